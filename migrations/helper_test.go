package migrations_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"sumepoller/internal/pgtest"
	"sumepoller/migrations"
)

// threeColumns is the table as users have it before adoption.
const threeColumns = `
CREATE TABLE video_jobs (
    job_id       text PRIMARY KEY,
    state        text NOT NULL DEFAULT 'pending',
    next_poll_at timestamptz NOT NULL DEFAULT now() + interval '15 seconds'
);
CREATE INDEX their_due_idx ON video_jobs (next_poll_at) WHERE state = 'pending';
INSERT INTO video_jobs SELECT 'job_' || n, 'pending', now() FROM generate_series(1, 320) n;`

// allowed is the time limit of a migration in these tests.
const allowed = 2 * time.Minute

// empty returns a pool on a database without the schema, after running setup.
func empty(t *testing.T, setup ...string) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t, pgtest.Empty(t))
	run(t, pool, setup...)
	return pool
}

func run(t *testing.T, pool *pgxpool.Pool, statements ...string) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, s := range statements {
		if _, err := conn.Conn().PgConn().Exec(t.Context(), s).ReadAll(); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// up migrates pool's database with pool's login.
func up(t *testing.T, pool *pgxpool.Pool) (migrations.Result, error) {
	t.Helper()
	return upAs(t, pool, "")
}

// upAs migrates pool's database with another login.
func upAs(t *testing.T, pool *pgxpool.Pool, role string) (migrations.Result, error) {
	t.Helper()
	config := pool.Config()
	if role != "" {
		config.ConnConfig.User, config.ConnConfig.Password = role, rolePassword
	}
	ctx, cancel := context.WithTimeout(t.Context(), allowed)
	defer cancel()
	return migrations.Up(ctx, config)
}

func mustUp(t *testing.T, pool *pgxpool.Pool, want migrations.Result) {
	t.Helper()
	got, err := up(t, pool)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("migrate: got %+v, error %v; want %+v", got, err, want)
	}
}

// queryColumn returns the first column of a query as strings.
func queryColumn(t *testing.T, pool *pgxpool.Pool, query string, args ...any) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return got
}

// queryValue returns the one value of a query as a string.
func queryValue(t *testing.T, pool *pgxpool.Pool, query string, args ...any) string {
	t.Helper()
	got := queryColumn(t, pool, query, args...)
	if len(got) != 1 {
		t.Fatalf("%s: got %d rows, want 1", query, len(got))
	}
	return got[0]
}

// shape describes all tables: columns in order with type, nullability and default,
// indexes, storage parameters.
func shape(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	return queryColumn(t, pool, `
SELECT line FROM (
    SELECT c.relname || ' ' || row_number() OVER (PARTITION BY c.relname ORDER BY a.attnum) || ' ' || a.attname || ' ' ||
           format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END ||
           coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') AS line
      FROM pg_class c
      JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
     WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL
    SELECT relname || ' ' || reloptions::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND reloptions IS NOT NULL
) AS lines ORDER BY line COLLATE "C"`)
}

// rolePassword is for servers that ask for one.
const rolePassword = "only for tests"

// login creates a role with a unique name. The cleanup drops it, with what it owns
// in pool's database.
func login(t *testing.T, pool *pgxpool.Pool, attributes string) string {
	t.Helper()
	config := pool.Config().ConnConfig
	role := strings.Replace(config.Database, "_test_", "_role_", 1) + "_" + strings.ToLower(attributes)
	run(t, pool, `CREATE ROLE "`+role+`" PASSWORD '`+rolePassword+`' `+attributes)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.ConnectConfig(ctx, config.Copy())
		if err != nil {
			t.Errorf("drop role: %v", err)
			return
		}
		defer func() { _ = conn.Close(ctx) }()
		for _, s := range []string{`DROP OWNED BY "` + role + `" CASCADE`, `DROP ROLE "` + role + `"`} {
			if _, err := conn.Exec(ctx, s); err != nil {
				t.Errorf("%s: %v", s, err)
			}
		}
	})
	return role
}

// fixture is a database whose video_jobs belongs to another role.
type fixture struct {
	pool            *pgxpool.Pool
	owner, migrator string
}
