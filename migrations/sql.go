package migrations

import (
	"embed"
	"strings"
)

//go:embed sql/*.sql
var files embed.FS

// The statements, in the order in which a migration runs them.
var (
	adoptSQL     = statement("adopt")     // refuses what cannot be adopted, by its columns and rights
	structureSQL = statement("structure") // refuses or warns of what is around the table
	tablesSQL    = statement("tables")    // makes the tables
	addSQL       = statement("add")       // adds the columns and the storage
	trialSQL     = statement("trial")     // tries the product's writes
)

// statement returns a file of sql/ with the parts that several of them share.
func statement(name string) string {
	return strings.NewReplacer("{{columns}}", read("columns"), "{{report}}", read("report"), "{{due_indexes}}", dueIndexes).Replace(read(name))
}

// read panics for a file that was not built in, at the program's start.
func read(name string) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err)
	}
	return string(text)
}
