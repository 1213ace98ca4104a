package model

import (
	"slices"

	"pgregory.net/rapid"

	"sumepoller/internal/poller"
)

// write is a kind of change to a row that a trigger can refuse.
type write string

const (
	onClaim      write = "claim"
	onFinish     write = "finish"
	onReschedule write = "reschedule"
	onError      write = "error"
	onRelease    write = "release"
)

func writeOf(s poller.Settlement) write {
	switch {
	case s.State != "":
		return onFinish
	case s.Error != "":
		return onError
	}
	return onReschedule
}

// how is the way in which a trigger refuses a write. A SQLSTATE is raised, with
// the prefix late at the commit.
type how string

const (
	drop    how = "drop"     // RETURN NULL
	keepOld how = "keep old" // RETURN OLD
	reopen  how = "reopen"   // a finish becomes pending again
	past    how = "past"     // next_poll_at is set into the past
	answer  how = "answer"   // 22023 where there is a final answer
	late        = "late "
)

// hows are the ways in which each write is refused.
var hows = func() map[write][]how {
	all := map[write][]how{}
	for _, w := range []write{onClaim, onFinish, onReschedule, onError, onRelease} {
		all[w] = []how{
			"P0001", "23514", "21000", "42703", "44000", "0A000", "22023", "54000", "TR001", late + "23514", late + "P0001",
			drop, drop, drop, keepOld, keepOld, keepOld,
		}
	}
	all[onFinish] = append(all[onFinish], reopen, reopen, reopen, reopen, answer)
	all[onReschedule] = append(all[onReschedule], past, past, past)
	all[onError] = append(all[onError], past, past, past)
	return all
}()

// refusal is what the store has to report.
func (r *row) refusal(h how, write string) *poller.WriteError {
	refusal := &poller.WriteError{JobID: r.ID, Write: write}
	switch h {
	case drop, keepOld, reopen, past: // no error
	case answer:
		refusal.SQLState = "22023"
	default:
		refusal.SQLState = string(h[len(h)-5:])
	}
	return refusal
}

// refusalsSQL makes the table's triggers, whose behaviour is in rows.
const refusalsSQL = `
CREATE TABLE refusals (job_id text, write text, how text, PRIMARY KEY (job_id, write));

CREATE FUNCTION write_of(old video_jobs, new video_jobs) RETURNS text LANGUAGE sql AS $$
	SELECT CASE
		WHEN new.polls > old.polls OR new.consecutive_errors > old.consecutive_errors THEN
			CASE WHEN new.finished_at IS NOT NULL THEN 'finish'
			     WHEN new.consecutive_errors > old.consecutive_errors THEN 'error'
			     ELSE 'reschedule' END
		WHEN new.state <> 'pending' THEN NULL
		WHEN new.leased_until = '-infinity' AND old.leased_until > '-infinity' THEN 'release'
		-- A lease that a check moves ends before now or in days.
		WHEN new.leased_until > now() AND new.leased_until < now() + interval '1 hour' AND new.leased_until <> old.leased_until THEN 'claim'
	END
$$;

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	how text := (SELECT r.how FROM refusals AS r WHERE r.job_id = new.job_id AND r.write = write_of(old, new));
BEGIN
	IF how IS NULL OR (how LIKE 'late %') <> (TG_WHEN = 'AFTER') THEN
		RETURN new;
	ELSIF how = 'drop' THEN
		RETURN NULL;
	ELSIF how = 'keep old' THEN
		RETURN old;
	ELSIF how = 'reopen' THEN
		new.state := 'pending';
	ELSIF how = 'past' THEN
		new.next_poll_at := now() - interval '1 minute';
	ELSIF how <> 'answer' OR new.final_status IS NOT NULL THEN
		RAISE EXCEPTION 'not this row' USING ERRCODE = CASE how WHEN 'answer' THEN '22023' ELSE right(how, 5) END;
	END IF;
	RETURN new;
END
$$;

CREATE TRIGGER refuse BEFORE UPDATE ON video_jobs FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE CONSTRAINT TRIGGER refuse_late AFTER UPDATE ON video_jobs DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION refuse();
`

// together lists the kinds of write that the table begins to refuse of one row.
// A row that cannot be claimed meets none of the others.
var together = [][]write{
	{onClaim}, {onClaim}, {onRelease}, {onFinish}, {onReschedule}, {onError}, {onFinish, onError}, {onFinish, onReschedule, onError, onRelease},
}

// refuse makes the table refuse some writes to a row.
func (w *world) refuse(t *rapid.T) {
	r := w.one(t, w.which(func(r *row) bool { return r.State == poller.StatePending }))
	for _, kind := range rapid.SampledFrom(together).Draw(t, "writes") {
		h := rapid.SampledFrom(hows[kind]).Draw(t, "how")
		w.t.Logf("the table refuses %s of %s: %s", kind, r.ID, h)
		r.refusals[kind] = h
		w.exec(`INSERT INTO refusals VALUES ($1, $2, $3) ON CONFLICT (job_id, write) DO UPDATE SET how = excluded.how`, r.ID, string(kind), string(h))
	}
}

// allow lets the table take all writes to a row again.
func (w *world) allow(t *rapid.T) {
	r := w.one(t, w.which(func(r *row) bool { return len(r.refusals) > 0 }))
	w.t.Logf("the table takes %s again", r.ID)
	clear(r.refusals)
	w.exec(`DELETE FROM refusals WHERE job_id = $1`, r.ID)
}

// named holds the refusals that a claim reported against the model. due are the
// rows that it may have tried to lease.
func (w *world) named(c *claimant, r poller.ClaimRequest, refused []poller.WriteError, due []*row) {
	for _, got := range refused {
		row := w.row(got.JobID)
		switch want := row.claimRefusal(r.Lease); {
		case c.leftOut[row.ID]:
			w.disagree("%s's claim named %s, which it had left out before", c.name, row.ID)
		case !slices.Contains(due, row):
			w.disagree("%s's claim named %s, which was not to be had: %+v", c.name, row.ID, row.record)
		case want == nil:
			w.disagree("%s's claim named %s, which the table takes: %+v", c.name, row.ID, got)
		default:
			w.sameRefusal(&got, want)
		}
		c.leftOut[row.ID] = true
	}
}

// sameRefusal wants an object beside what the model knows: it is named by the
// function where an error was raised, and otherwise by the trigger.
func (w *world) sameRefusal(got, want *poller.WriteError) {
	switch {
	case got == nil && want == nil:
	case got == nil || want == nil || got.JobID != want.JobID || got.SQLState != want.SQLState || got.Write != want.Write:
		w.disagree("reported %+v, want %+v", got, want)
	case got.Object != "function refuse" && got.Object != "trigger refuse":
		w.disagree("%s refused by %q, want the trigger or its function", got.JobID, got.Object)
	}
}
