package migrations

import (
	"embed"
	"io/fs"
	"regexp"
	"strings"
)

//go:embed sql
var files embed.FS

// The statements, in the order in which a migration runs them.
var (
	adoptSQL     = statement("adopt")     // refuses what cannot be adopted, by its columns and rights
	structureSQL = statement("structure") // refuses or warns of what is around the table
	tablesSQL    = statement("tables")    // makes the tables
	addSQL       = statement("add")       // adds the columns and the storage settings
	trialSQL     = statement("trial")     // tries the product's writes
	dueIndexes   = statement("due_indexes")
	versionSQL   = statement("version") // records the versions

	// For psql only.
	headSQL  = statement("head")
	indexSQL = statement("index")

	dueIndexConcurrently = strings.Replace(strings.TrimSpace(statement("due_index")), "INDEX", "INDEX CONCURRENTLY", 1)
	isBuilding           = "SELECT EXISTS (" + statement("builders") + ")"
)

// steps are the files of sql/steps. The version of a step is its place, from 1,
// and the number in its name. A step is never changed or removed.
var steps = readSteps()

func readSteps() (steps []string) {
	names, err := fs.Glob(files, "sql/steps/*.sql")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		steps = append(steps, statement(strings.TrimSuffix(strings.TrimPrefix(name, "sql/"), ".sql")))
	}
	return steps
}

var included = regexp.MustCompile(`{{\w+}}`)

// statement returns a file of sql/; {{name}} in it stands for the file of that
// name. It panics at the program's start for a file that is not built in.
func statement(name string) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err)
	}
	return included.ReplaceAllStringFunc(string(text), func(part string) string { return statement(strings.Trim(part, "{}")) })
}
