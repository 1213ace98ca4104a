package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"sumepoller/migrations"
)

// table describes one of the product's tables.
type table struct {
	Schema, Name, Owner string
	Mine                bool     // the session has the owner's rights
	Sequences           []string // behind defaults of its columns
}

const tableSQL = `
SELECT n.nspname AS schema, c.relname AS name, pg_get_userbyid(c.relowner) AS owner,
       pg_has_role(c.relowner, 'USAGE') AS mine,
       ARRAY(SELECT DISTINCT s.oid::regclass::text
               FROM pg_depend d
               JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
              WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
                AND d.refobjid = c.oid AND d.deptype = 'a') AS sequences
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = to_regclass($1)`

// grant gives the role its rights on the tables, and revokes all others.
func grant(ctx context.Context, tx pgx.Tx, r role) error {
	name := pgx.Identifier{r.name}.Sanitize()
	database := pgx.Identifier{tx.Conn().Config().Database}.Sanitize()
	if err := execute(ctx, tx, []string{`GRANT CONNECT ON DATABASE ` + database + ` TO ` + name}); err != nil {
		return err
	}
	var schemas []string
	for _, of := range migrations.Tables {
		rows, err := tx.Query(ctx, tableSQL, of)
		if err != nil {
			return err
		}
		t, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[table])
		if err != nil {
			return fmt.Errorf("read table %s: %w", of, err)
		}
		if schema := (pgx.Identifier{t.Schema}).Sanitize(); !slices.Contains(schemas, schema) {
			schemas = append(schemas, schema)
		}
		if err := grantOn(ctx, tx, name, t, r.rights.On(of)); err != nil {
			return err
		}
	}
	// Outside the schema public, the role needs a search_path to find the tables.
	if !slices.Equal(schemas, []string{`"public"`}) {
		path := `ALTER ROLE ` + name + ` IN DATABASE ` + database + ` SET search_path = ` + strings.Join(schemas, ", ")
		if err := execute(ctx, tx, []string{path}); err != nil {
			return err
		}
	}
	return verify(ctx, tx, r)
}

// grantOn sets the rights on one table, as its owner.
func grantOn(ctx context.Context, tx pgx.Tx, name string, t table, rights string) error {
	on := pgx.Identifier{t.Schema, t.Name}.Sanitize()
	schema := pgx.Identifier{t.Schema}.Sanitize()
	statements := []string{`GRANT USAGE ON SCHEMA ` + schema + ` TO ` + name}
	if !t.Mine {
		statements = append(statements, `SET LOCAL ROLE `+pgx.Identifier{t.Owner}.Sanitize())
	}
	statements = append(statements, `REVOKE ALL ON `+on+` FROM `+name)
	if rights != "" {
		statements = append(statements, `GRANT `+rights+` ON `+on+` TO `+name)
	}
	// A serial column of the user takes its default from a sequence.
	if strings.Contains(rights, "INSERT") {
		for _, sequence := range t.Sequences {
			statements = append(statements, `GRANT USAGE ON SEQUENCE `+sequence+` TO `+name)
		}
	}
	if !t.Mine {
		statements = append(statements, `SET LOCAL ROLE NONE`)
	}
	if err := execute(ctx, tx, statements); err != nil {
		if !t.Mine {
			return fmt.Errorf("table %s belongs to role %s, which the administrator may not act for: GRANT %s to it: %w", on, t.Owner, t.Owner, plain(err))
		}
		return err
	}
	return nil
}

const verifySQL = `
SELECT concat_ws(', ',
       CASE WHEN NOT has_database_privilege($1::name, current_database(), 'CONNECT')
            THEN format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), $1) END,
       CASE WHEN NOT has_schema_privilege($1::name, n.oid, 'USAGE')
            THEN format('GRANT USAGE ON SCHEMA %I TO %I', n.nspname, $1) END)
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = to_regclass('video_jobs')`

// verify checks that the role has the rights on the database and the schema:
// the server only warns if a role without the right to grant executes a GRANT.
func verify(ctx context.Context, tx pgx.Tx, r role) error {
	var lacking string
	if err := tx.QueryRow(ctx, verifySQL, r.name).Scan(&lacking); err != nil {
		return err
	}
	if lacking != "" {
		return fmt.Errorf("the administrator may not give it access: run as the owner: %s", lacking)
	}
	return nil
}
