package main

import (
	"encoding/json"
	"strings"
	"testing"

	"sumepoller/internal/config"
	"sumepoller/internal/telemetry"
	"sumepoller/migrations"
)

// fiftyDue is a user's table with rows that are due.
const fiftyDue = `CREATE TABLE video_jobs (job_id text PRIMARY KEY, state text, next_poll_at timestamptz);
INSERT INTO video_jobs SELECT 'job_' || n, 'pending', now() FROM generate_series(1, 50) n`

// script runs the statements of one string.
func (s *stack) script(sql string) {
	s.t.Helper()
	s.exec(s.adminLogin, strings.Split(sql, ";\n")...)
}

// Row-level security can hide every due row from the poller, whose runs then report
// that nothing is due.
func TestAccess_RowSecurity(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policies string // %P: the poller's role
		want     []string
	}{
		"no policy":             {``, []string{"refuses its rows", "from role %P"}},
		"tenant":                {`CREATE POLICY tenant ON video_jobs USING (job_id LIKE current_setting('app.tenant', true) || '%')`, []string{"from role %P"}},
		"select only":           {`CREATE POLICY readers ON video_jobs FOR SELECT USING (true)`, []string{"from role %P"}},
		"another role's":        {`CREATE POLICY theirs ON video_jobs TO CURRENT_USER USING (true)`, []string{"from role %P"}},
		"no update":             {`CREATE POLICY readers ON video_jobs FOR SELECT USING (true);` + "\n" + `CREATE POLICY buyers ON video_jobs FOR INSERT WITH CHECK (true)`, []string{"from role %P"}},
		"some rows":             {`CREATE POLICY part ON video_jobs USING (length(job_id) <> 5)`, []string{"of 50 rows that were compared, role %P sees 41", "from role %P"}},
		"some rows of updates":  {`CREATE POLICY readers ON video_jobs FOR SELECT USING (true);` + "\n" + `CREATE POLICY buyers ON video_jobs FOR INSERT WITH CHECK (true);` + "\n" + `CREATE POLICY writers ON video_jobs FOR UPDATE USING (length(job_id) <> 5) WITH CHECK (true)`, []string{"role %P sees 50 and may lock 41"}},
		"a restrictive policy":  {`CREATE POLICY everyone ON video_jobs USING (true);` + "\n" + `CREATE POLICY narrow ON video_jobs AS RESTRICTIVE USING (false) WITH CHECK (true)`, []string{"from role %P", "narrow, which restricts it"}},
		"everyone":              {`CREATE POLICY everyone ON video_jobs USING (true)`, nil},
		"conditions that hold":  {`CREATE POLICY every_job ON video_jobs USING (job_id LIKE 'job\_%')`, nil},
		"one for each command":  {`CREATE POLICY readers ON video_jobs FOR SELECT USING (true);` + "\n" + `CREATE POLICY buyers ON video_jobs FOR INSERT WITH CHECK (true);` + "\n" + `CREATE POLICY writers ON video_jobs FOR UPDATE USING (true)`, nil},
		"named as the role":     {`CREATE POLICY "%P" ON video_jobs FOR SELECT TO PUBLIC USING (true)`, []string{`CREATE POLICY "%P_all" ON video_jobs TO "%P"`}},
		"of the poller's alone": {`CREATE POLICY narrow ON video_jobs USING (current_user LIKE '%poller') WITH CHECK (true)`, []string{"from role \"%S\""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t)
			fill := strings.NewReplacer("%P", s.poller, "%S", s.submit)
			s.script(fiftyDue)
			s.exec(s.adminLogin, `ALTER TABLE video_jobs ENABLE ROW LEVEL SECURITY`)
			if c.policies != "" {
				s.script(fill.Replace(c.policies))
			}
			answer, err := s.invoke()
			if c.want == nil {
				if err != nil || answer != migrated {
					t.Errorf("got %s, error %v; want %s", answer, err, migrated)
				}
				return
			}
			if err == nil {
				t.Fatalf("got %s, want an error", answer)
			}
			for _, want := range append(c.want, "CREATE POLICY") {
				if want = fill.Replace(want); !strings.Contains(strings.ReplaceAll(err.Error(), `"`, ``), strings.ReplaceAll(want, `"`, ``)) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
			// The line contains the cure, ready to run.
			for range 2 {
				for line := range strings.Lines(err.Error()) {
					if _, policy, ok := strings.Cut(line, "CREATE POLICY"); ok {
						policy, _, _ = strings.Cut(strings.TrimSpace(policy), ", and ALTER POLICY")
						s.exec(s.adminLogin, "CREATE POLICY "+policy)
					}
				}
				if name == "a restrictive policy" {
					s.exec(s.adminLogin, `DROP POLICY narrow ON video_jobs`)
				}
				if answer, err = s.invoke(); err == nil {
					break
				}
			}
			if err != nil || answer != again {
				t.Errorf("after the cure: got %s, error %v; want %s", answer, err, again)
			}
		})
	}
}

// warnings invokes and returns the warnings of the answer.
func (s *stack) warnings() []string {
	s.t.Helper()
	answer, err := s.invoke()
	if err != nil {
		s.t.Fatal(err)
	}
	var got migrations.Result
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		s.t.Fatal(err)
	}
	return got.Warnings
}

func TestAccess_MigratorSeesNothing(t *testing.T) {
	t.Parallel()
	for name, roles := range map[string]bool{"no roles are made": false, "roles are made": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t)
			var log strings.Builder
			s.h.log = telemetry.NewLogger(&log, 0)
			s.script(fiftyDue)
			s.exec(s.adminLogin, `ALTER TABLE video_jobs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY`)
			if roles {
				s.exec(s.adminLogin, `CREATE POLICY functions ON video_jobs USING (current_user <> '`+s.admin+`')`)
			} else {
				s.h.cfg.Roles = config.Roles{}
			}
			want := `CREATE POLICY ` + s.admin + ` ON video_jobs TO ` + s.admin + ` USING (true) WITH CHECK (true)`
			got := s.warnings()
			if len(got) == 0 || !strings.Contains(got[0], want) {
				t.Errorf("warnings: got %q, want one with %q", got, want)
			}
			if n := strings.Count(log.String(), `"level":"WARN"`); n != len(got) {
				t.Errorf("got %d warnings in the log, want %d: %s", n, len(got), &log)
			}
			s.exec(s.adminLogin, want)
			if got := s.warnings(); len(got) > 0 {
				t.Errorf("warnings after the cure: got %q", got)
			}
		})
	}
}

// A trigger runs with the rights of the function's role, which may lack some.
func TestAccess_TriggerLacksRights(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.script(fiftyDue)
	s.exec(s.adminLogin, `CREATE TABLE audit (job_id text)`,
		`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO audit VALUES (NEW.job_id); RETURN NEW; END$$`,
		`CREATE TRIGGER noting BEFORE UPDATE ON video_jobs FOR EACH ROW EXECUTE FUNCTION note()`)
	s.refuses("trigger noting", "42501", `GRANT to role "`+s.poller+`"`, "SECURITY DEFINER")
	s.exec(s.adminLogin, `GRANT INSERT ON audit TO "`+s.poller+`"`)
	s.mustInvoke(again)
}

// The administrator may lack a right that a trigger needs and that others have.
func TestAccess_MigratorLacksRights(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.script(fiftyDue)
	s.exec(s.superuser, `CREATE TABLE audit (job_id text)`,
		`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO audit VALUES (NEW.job_id); RETURN NEW; END$$`,
		`CREATE TRIGGER noting BEFORE UPDATE ON video_jobs FOR EACH ROW EXECUTE FUNCTION note()`)
	s.h.cfg.Roles = config.Roles{}
	if got := s.warnings(); len(got) != 1 || !strings.Contains(got[0], "trigger noting") || !strings.Contains(got[0], "GRANT to role "+s.admin) {
		t.Errorf("warnings: got %q", got)
	}
	s.exec(s.superuser, `GRANT INSERT ON audit TO `+s.admin)
	s.mustInvoke(again)
}

func TestAccess_WarningsInAnswer(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.script(fiftyDue)
	s.exec(s.adminLogin, `ALTER TABLE video_jobs ADD CONSTRAINT words CHECK (state IN ('pending', 'completed', 'failed'))`)
	for range 2 {
		if got := s.warnings(); len(got) != 1 || !strings.Contains(got[0], "canceled, cancelled, expired, not_found, stopped (constraint words") {
			t.Errorf("warnings: got %q", got)
		}
	}
}
