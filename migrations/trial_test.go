package migrations_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/migrations"
)

// bareTable is a three-column table without the due index.
const bareTable = `CREATE TABLE video_jobs (job_id text PRIMARY KEY, state text NOT NULL DEFAULT 'pending', next_poll_at timestamptz NOT NULL DEFAULT now());
INSERT INTO video_jobs SELECT 'job_' || n, 'pending', now() FROM generate_series(1, 21) n;`

// trigger makes a trigger on video_jobs: when is such as "BEFORE UPDATE", scope
// ROW or STATEMENT.
func trigger(name, when, scope, body string) string {
	return `CREATE FUNCTION ` + name + `() RETURNS trigger LANGUAGE plpgsql AS $f$BEGIN ` + body + ` END$f$;
CREATE TRIGGER ` + name + ` ` + when + ` ON video_jobs FOR EACH ` + scope + ` EXECUTE FUNCTION ` + name + `();`
}

const threeColumnHistory = `CREATE TABLE history (job_id text, state text, next_poll_at timestamptz);`

// Tables on which the loop can never work. Adopted, nothing would be read, or every
// row again and again.
func TestTrial_Refused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setup string
		want  []string
	}{
		"trigger returns NULL":     {trigger("swallow", "BEFORE UPDATE", "ROW", `RETURN NULL;`), []string{"does not keep the claim", "trigger swallow", "return NEW"}},
		"trigger returns OLD":      {trigger("undo", "BEFORE UPDATE", "ROW", `RETURN OLD;`), []string{"does not keep the claim", "trigger undo"}},
		"state set by the claim":   {trigger("busy", "BEFORE UPDATE", "ROW", `IF NEW.leased_until > now() THEN NEW.state := 'processing'; END IF; RETURN NEW;`), []string{"does not keep the claim", "trigger busy"}},
		"trigger raises":           {trigger("audit", "AFTER UPDATE", "ROW", `RAISE EXCEPTION 'no';`), []string{"refuses the claim", "trigger audit", "P0001", "DROP TRIGGER audit ON video_jobs"}},
		"trigger asserts":          {trigger("audit", "BEFORE UPDATE", "ROW", `ASSERT false; RETURN NEW;`), []string{"trigger audit", "P0004"}},
		"statement trigger raises": {trigger("closed", "BEFORE UPDATE", "STATEMENT", `RAISE EXCEPTION 'no' USING ERRCODE = '0A000';`), []string{"refuses the claim", "trigger closed", "0A000"}},
		"always trigger":           {trigger("audit", "BEFORE UPDATE", "ROW", `RETURN NULL;`) + `ALTER TABLE video_jobs ENABLE ALWAYS TRIGGER audit;`, []string{"trigger audit"}},
		"one of two triggers":      {trigger("aaa", "BEFORE UPDATE", "ROW", `RETURN NEW;`) + trigger("bbb", "BEFORE UPDATE", "ROW", `RAISE EXCEPTION 'no';`), []string{"(trigger bbb, "}},
		"deferred constraint trigger": {trigger("late", "AFTER UPDATE", "STATEMENT", `RETURN NULL;`) + `CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'no'; END$$;
CREATE CONSTRAINT TRIGGER later AFTER UPDATE ON video_jobs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION later();`, []string{"refuses the claim", "trigger later"}},
		"history of OLD.*":         {threeColumnHistory + trigger("keep", "AFTER UPDATE", "ROW", `INSERT INTO history SELECT OLD.*; RETURN NULL;`), []string{"trigger keep", "42601", "name the columns"}},
		"history of NEW.*":         {threeColumnHistory + trigger("keep", "AFTER INSERT", "ROW", `INSERT INTO history SELECT NEW.*; RETURN NULL;`), []string{"refuses the INSERT", "trigger keep", "42601", "name the columns"}},
		"history's own constraint": {`CREATE TABLE history (job_id text PRIMARY KEY); INSERT INTO history SELECT job_id FROM video_jobs;` + trigger("keep", "BEFORE UPDATE", "ROW", `INSERT INTO history VALUES (OLD.job_id), (OLD.job_id); RETURN NEW;`), []string{"trigger keep", "23505"}},
		"due time is kept":         {trigger("hold", "BEFORE UPDATE", "ROW", `NEW.next_poll_at := OLD.next_poll_at - interval '1 hour'; RETURN NEW;`), []string{"does not keep a new due time", "trigger hold"}},
		"no terminal word":         {`ALTER TABLE video_jobs ADD CONSTRAINT words CHECK (state IN ('pending', 'done'));`, []string{"refuses state completed, complete", "constraint words", "23514", "OR state IN ('completed'"}},
		"state turned back":        {trigger("again", "BEFORE UPDATE", "ROW", `NEW.state := 'pending'; RETURN NEW;`), []string{"does not keep state completed", "trigger again"}},
		"language C":               {`CREATE TRIGGER same BEFORE UPDATE ON video_jobs FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();` + trigger("undo", "BEFORE UPDATE", "ROW", `RETURN OLD;`), []string{"trigger undo"}},
		"no insert, no update":     {`ALTER TABLE video_jobs ADD customer bigint; UPDATE video_jobs SET customer = 1; ALTER TABLE video_jobs ALTER customer SET NOT NULL;` + trigger("undo", "BEFORE UPDATE", "ROW", `RETURN OLD;`), []string{"does not keep the claim", "trigger undo"}},
		"rule instead of update":   {`CREATE RULE mine AS ON UPDATE TO video_jobs DO INSTEAD NOTHING;`, []string{"rule mine", "UPDATE", "DROP RULE mine ON video_jobs"}},
		"rule beside insert":       {`CREATE TABLE log (id text); CREATE RULE mine AS ON INSERT TO video_jobs DO ALSO INSERT INTO log VALUES (NEW.job_id);`, []string{"rule mine", "INSERT"}},
		"child table":              {`CREATE TABLE video_jobs_archive () INHERITS (video_jobs);`, []string{"table video_jobs_archive", "ALTER TABLE video_jobs_archive NO INHERIT video_jobs"}},
		"itself a child":           {`CREATE TABLE every_job (job_id text); ALTER TABLE video_jobs ALTER job_id SET NOT NULL, INHERIT every_job;`, []string{"inherits from table every_job", "ALTER TABLE video_jobs NO INHERIT every_job"}},
		"replica identity nothing": {`CREATE PUBLICATION feed FOR TABLE video_jobs; ALTER TABLE video_jobs REPLICA IDENTITY NOTHING;`, []string{"publication feed", "ALTER TABLE video_jobs REPLICA IDENTITY DEFAULT"}},
		"no primary key":           {`ALTER TABLE video_jobs DROP CONSTRAINT video_jobs_pkey, ADD UNIQUE (job_id); CREATE PUBLICATION feed FOR ALL TABLES;`, []string{"publication feed", "ALTER TABLE video_jobs REPLICA IDENTITY USING INDEX video_jobs_job_id_key"}},
		"too many columns":         {`DO $$BEGIN EXECUTE (SELECT 'ALTER TABLE video_jobs ' || string_agg('ADD c' || n || ' int', ', ') FROM generate_series(1, 1587) n); END$$;`, []string{"it has 1590 columns", "14 more do not fit"}},
		"typed table":              {`DROP TABLE video_jobs; CREATE TYPE job AS (job_id text, state text, next_poll_at timestamptz); CREATE TABLE video_jobs OF job (PRIMARY KEY (job_id));`, []string{"table of type job", "ALTER TABLE video_jobs NOT OF"}},
		"partition": {`DROP TABLE video_jobs; CREATE TABLE jobs (job_id text PRIMARY KEY, state text, next_poll_at timestamptz) PARTITION BY HASH (job_id);
CREATE TABLE video_jobs PARTITION OF jobs FOR VALUES WITH (MODULUS 1, REMAINDER 0);`, []string{"partition of jobs", "ALTER TABLE jobs DETACH PARTITION video_jobs"}},
		"event trigger": {`CREATE FUNCTION frozen() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'no DDL here'; END$$;
CREATE EVENT TRIGGER no_ddl ON ddl_command_start EXECUTE FUNCTION frozen();`, []string{"no DDL here", "(no_ddl)", "ALTER EVENT TRIGGER"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := empty(t, bareTable+c.setup)
			before := shape(t, pool)
			got, err := up(t, pool)
			if err == nil || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %+v, error %v; want an error of one line", got, err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want it to hold %q", err, want)
				}
			}
			if diff := cmp.Diff(before, shape(t, pool)); diff != "" {
				t.Errorf("what was there (-before +after):\n%s", diff)
			}
			if got := queryValue(t, pool, `SELECT count(*)::text FROM pg_class WHERE relname IN ('video_jobs_schema', 'video_submissions', 'read_budget')`); got != "0" {
				t.Errorf("got %s tables of the product beside it, want none", got)
			}
		})
	}
}

// A table that works in part is adopted with a warning that says what to do. Each
// migration repeats the warning until the cause is gone.
func TestTrial_Warned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setup string
		want  []string // of one warning; none: no warning
		cure  string   // after which there is no warning
	}{
		"nothing odd":          {``, nil, ""},
		"trigger that is fine": {trigger("touch", "BEFORE INSERT OR UPDATE", "ROW", `NEW.state := trim(NEW.state); RETURN NEW;`), nil, ""},
		"trigger of one row":   {trigger("one", "BEFORE UPDATE", "ROW", `IF NEW.job_id = 'job_7' THEN RAISE EXCEPTION 'no'; END IF; RETURN NEW;`), nil, ""},
		"generated column":     {`ALTER TABLE video_jobs ADD upper_id text GENERATED ALWAYS AS (upper(job_id)) STORED;`, nil, ""},
		"notifying trigger":    {trigger("tell", "AFTER UPDATE", "ROW", `PERFORM pg_notify('mine', NEW.job_id); RETURN NULL;`), nil, ""},
		"NOT NULL column": {
			`ALTER TABLE video_jobs ADD customer_id bigint NOT NULL DEFAULT 1; ALTER TABLE video_jobs ALTER customer_id DROP DEFAULT;`,
			[]string{"refuses the INSERT of an id", "submit refuses before it posts", "customer_id", "23502", "SET DEFAULT"},
			`ALTER TABLE video_jobs ALTER customer_id DROP NOT NULL`,
		},
		"short id":    {`ALTER TABLE video_jobs ALTER job_id TYPE varchar(12);`, []string{"refuses the INSERT", "job_id, which is varchar(12)", "22001"}, `ALTER TABLE video_jobs ALTER COLUMN job_id TYPE text`},
		"foreign key": {`CREATE TABLE orders (id text PRIMARY KEY); INSERT INTO orders SELECT job_id FROM video_jobs; ALTER TABLE video_jobs ADD CONSTRAINT ordered FOREIGN KEY (job_id) REFERENCES orders;`, []string{"refuses the INSERT", "constraint ordered", "23503"}, `ALTER TABLE video_jobs DROP CONSTRAINT ordered`},
		"deferred foreign key": {
			`CREATE TABLE orders (id text PRIMARY KEY); INSERT INTO orders SELECT job_id FROM video_jobs; ALTER TABLE video_jobs ADD CONSTRAINT ordered FOREIGN KEY (job_id) REFERENCES orders DEFERRABLE INITIALLY DEFERRED;`,
			[]string{"refuses the INSERT", "constraint ordered", "23503"},
			`ALTER TABLE video_jobs DROP CONSTRAINT ordered`,
		},
		"check of the id":     {`ALTER TABLE video_jobs ADD CONSTRAINT short CHECK (length(job_id) < 10);`, []string{"refuses the INSERT", "constraint short", "23514"}, `ALTER TABLE video_jobs DROP CONSTRAINT short`},
		"domain":              {`CREATE DOMAIN tag AS text DEFAULT 'x' CONSTRAINT long CHECK (length(VALUE) > 3); ALTER TABLE video_jobs ADD tag tag DEFAULT 'long enough'; ALTER TABLE video_jobs ALTER tag DROP DEFAULT;`, []string{"refuses the INSERT", "constraint long of domain tag"}, `ALTER DOMAIN tag DROP CONSTRAINT long`},
		"insert trigger":      {trigger("closed", "BEFORE INSERT", "ROW", `RETURN NULL;`), []string{"does not keep the INSERT", "trigger closed", "return NEW"}, `DROP TRIGGER closed ON video_jobs`},
		"words of a check":    {`ALTER TABLE video_jobs ADD CONSTRAINT words CHECK (state IN ('pending', 'completed', 'failed'));`, []string{"refuses state complete, success, succeeded, ready, error, errored, canceled, cancelled, expired, not_found, stopped", "constraint words", "23514"}, ""},
		"words of a trigger":  {trigger("strict", "BEFORE UPDATE", "ROW", `IF NEW.state = 'expired' THEN RAISE EXCEPTION 'no'; END IF; RETURN NEW;`), []string{"refuses state expired", "trigger strict", "P0001"}, `DROP TRIGGER strict ON video_jobs`},
		"a word turned back":  {trigger("again", "BEFORE UPDATE", "ROW", `IF NEW.state = 'completed' THEN NEW.state := 'pending'; END IF; RETURN NEW;`), []string{"does not keep state completed", "trigger again"}, `DROP TRIGGER again ON video_jobs`},
		"no reopening":        {trigger("final", "BEFORE UPDATE", "ROW", `IF OLD.state <> 'pending' THEN RETURN OLD; END IF; RETURN NEW;`), []string{"does not keep the reopening", "trigger final"}, `DROP TRIGGER final ON video_jobs`},
		"unique state":        {`DELETE FROM video_jobs WHERE job_id <> 'job_1'; CREATE UNIQUE INDEX one_each ON video_jobs (state);`, []string{"refuses the INSERT", "index one_each", "23505"}, `DROP INDEX one_each`},
		"exclusion":           {`DELETE FROM video_jobs WHERE job_id <> 'job_1'; ALTER TABLE video_jobs ADD CONSTRAINT alone EXCLUDE USING btree (state WITH =);`, []string{"refuses the INSERT", "constraint alone", "23P01"}, `ALTER TABLE video_jobs DROP CONSTRAINT alone`},
		"old rows break it":   {`ALTER TABLE video_jobs ADD tries int DEFAULT 0; UPDATE video_jobs SET tries = -1 WHERE job_id = 'job_3'; ALTER TABLE video_jobs ADD CONSTRAINT counted CHECK (tries >= 0) NOT VALID;`, []string{"constraint counted", "NOT VALID", `job_id "job_3"`, "VALIDATE CONSTRAINT counted"}, `UPDATE video_jobs SET tries = 0`},
		"empty table":         {`DELETE FROM video_jobs; ALTER TABLE video_jobs ADD customer_id bigint NOT NULL;`, []string{"only the INSERT was tried"}, `ALTER TABLE video_jobs ALTER customer_id DROP NOT NULL`},
		"identity of nothing": {`ALTER TABLE video_jobs REPLICA IDENTITY NOTHING;`, []string{"REPLICA IDENTITY of video_jobs is NOTHING", "REPLICA IDENTITY DEFAULT"}, `ALTER TABLE video_jobs REPLICA IDENTITY DEFAULT`},
		"slow trigger":        {trigger("slow", "BEFORE UPDATE", "ROW", `PERFORM pg_sleep(0.3); RETURN NEW;`), []string{"slow trigger"}, `DROP TRIGGER slow ON video_jobs`},
		"very slow trigger":   {trigger("slow", "BEFORE UPDATE", "ROW", `PERFORM pg_sleep(30); RETURN NEW;`), []string{"slow trigger"}, `DROP TRIGGER slow ON video_jobs`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := empty(t, bareTable+c.setup)
			rows := queryValue(t, pool, `SELECT count(*) || ' ' || coalesce(max(next_poll_at)::text, '') FROM video_jobs`)
			first, err := up(t, pool)
			if err != nil || first.From != 0 || first.To != migrations.Latest {
				t.Fatalf("got %+v, error %v", first, err)
			}
			holds := func(result migrations.Result, want []string) {
				t.Helper()
				for _, w := range want {
					if !strings.Contains(strings.Join(result.Warnings, "\n"), w) {
						t.Errorf("warnings: got %q, want one with %q", result.Warnings, w)
					}
				}
				if len(want) == 0 && len(result.Warnings) > 0 {
					t.Errorf("warnings: got %q, want none", result.Warnings)
				}
			}
			holds(first, c.want)
			second, err := up(t, pool)
			if err != nil {
				t.Fatal(err)
			}
			holds(second, c.want)
			if got := queryValue(t, pool, `SELECT count(*) || ' ' || coalesce(max(next_poll_at)::text, '') FROM video_jobs`); got != rows {
				t.Errorf("rows: got %s, want %s as before", got, rows)
			}
			if got := queryValue(t, pool, `SELECT count(*)::text FROM video_jobs WHERE polls <> 0 OR leased_until > '-infinity'`); got != "0" {
				t.Errorf("the trial left marks on %s rows", got)
			}
			if name == "words of a check" { // the warning ends with the SQL to run
				_, c.cure, _ = strings.Cut(first.Warnings[0], "23514): ")
			}
			if c.cure == "" {
				return
			}
			run(t, pool, c.cure)
			cured, err := up(t, pool)
			if err != nil {
				t.Fatal(err)
			}
			holds(cured, nil)
		})
	}
}
