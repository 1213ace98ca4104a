package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/migrations"
)

// Names by which our databases are known on a shared server. A test's name
// goes on with the second it was made in.
const (
	testPrefix     = "sumepoller_test_"
	templatePrefix = "sumepoller_template_"
)

// stale is the age past which a test's database belongs to a process that was
// killed: no run of the tests takes that long.
const stale = 6 * time.Hour

// templateKey is the advisory lock of the process that makes a template.
const templateKey int64 = 0x70677465737431

// ensureTemplate returns the name of the template for today's schema, made
// where the server has none yet. A template gets its name only when it is
// complete.
func ensureTemplate(ctx context.Context, server *pgx.Conn) (string, error) {
	schema, err := migrations.Schema()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(schema))
	template := templatePrefix + hex.EncodeToString(sum[:8])
	if there, err := exists(ctx, server, template); err != nil || there {
		return template, err
	}
	if _, err := server.Exec(ctx, `SELECT pg_advisory_lock($1)`, templateKey); err != nil {
		return "", err
	}
	defer func() {
		_, _ = server.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, templateKey)
	}()
	if there, err := exists(ctx, server, template); err != nil || there {
		return template, err
	}
	if err := sweep(ctx, server); err != nil {
		return "", err
	}
	return template, build(ctx, server, template)
}

func exists(ctx context.Context, server *pgx.Conn, name string) (there bool, err error) {
	err = server.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&there)
	return there, err
}

// build migrates a database under a working name and renames it. The caller
// holds the template lock.
func build(ctx context.Context, server *pgx.Conn, template string) error {
	draft := template + "_draft"
	if _, err := server.Exec(ctx, `DROP DATABASE IF EXISTS `+draft+` WITH (FORCE)`); err != nil {
		return err
	}
	if _, err := server.Exec(ctx, `CREATE DATABASE `+draft+` TEMPLATE template0`); err != nil {
		return err
	}
	config := &pgxpool.Config{ConnConfig: server.Config()}
	config.ConnConfig.Database = draft
	if _, err := migrations.Up(ctx, config); err != nil {
		return err
	}
	if _, err := server.Exec(ctx, `ALTER DATABASE `+draft+` WITH ALLOW_CONNECTIONS false`); err != nil {
		return err
	}
	// Sessions that migrated may take a moment to be gone; the server waits.
	_, err := server.Exec(ctx, `ALTER DATABASE `+draft+` RENAME TO `+template)
	return err
}

// sweep drops templates of other schemas and what killed test processes left.
// The caller holds the template lock.
func sweep(ctx context.Context, server *pgx.Conn) error {
	rows, err := server.Query(ctx, `SELECT datname FROM pg_database
 WHERE (starts_with(datname, $1) OR starts_with(datname, $2))
   AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.datname = pg_database.datname)`, templatePrefix, testPrefix)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		if rest, isTest := strings.CutPrefix(name, testPrefix); isTest && !old(rest) {
			continue
		}
		if _, err := server.Exec(ctx, `DROP DATABASE IF EXISTS `+name); err != nil {
			return fmt.Errorf("drop left database %s: %w", name, err)
		}
	}
	return nil
}

// old reports whether a test database is stale, by its name after the prefix.
func old(rest string) bool {
	made, _, _ := strings.Cut(rest, "_")
	seconds, err := strconv.ParseInt(made, 10, 64)
	return err == nil && time.Since(time.Unix(seconds, 0)) > stale
}
