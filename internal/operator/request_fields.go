package operator

import (
	"fmt"
	"time"
)

func parseBackfill(fields []member) (*Backfill, error) {
	b := &Backfill{}
	for _, m := range fields {
		at := "backfill." + m.name
		var err error
		switch m.name {
		case "job_ids":
			b.JobIDs, err = jobIDs(at, m.value)
		case "states":
			b.States, err = states(at, m.value)
		case "overdue":
			b.Overdue, err = truth(at, m.value)
		case "created_after":
			b.CreatedAfter, err = moment(at, m.value)
		case "created_before":
			b.CreatedBefore, err = moment(at, m.value)
		case "limit":
			b.Limit, err = count(at, m.value)
		case "reads_per_minute":
			b.ReadsPerMinute, err = count(at, m.value)
		case "dry_run":
			b.DryRun, err = truth(at, m.value)
		default:
			err = refuse("backfill."+label(m.name), "unknown field; want job_ids, states, overdue, "+
				"created_after, created_before, limit, reads_per_minute or dry_run")
		}
		if err != nil {
			return nil, err
		}
	}
	if len(b.JobIDs) == 0 && len(b.States) == 0 && !b.Overdue {
		return nil, refuse("backfill", "selects nothing; give job_ids, states or \"overdue\": true")
	}
	if b.CreatedAfter != nil && b.CreatedBefore != nil && !b.CreatedAfter.Before(*b.CreatedBefore) {
		return nil, refuse("backfill.created_after", "must lie before created_before")
	}
	return b, nil
}

func parseInspect(fields []member) (*Inspect, error) {
	q := &Inspect{}
	for _, m := range fields {
		at := "inspect." + m.name
		var err error
		switch m.name {
		case "job_ids":
			q.JobIDs, err = jobIDs(at, m.value)
		case "limit":
			q.Limit, err = count(at, m.value)
		default:
			err = refuse("inspect."+label(m.name), "unknown field; want job_ids or limit")
		}
		if err != nil {
			return nil, err
		}
	}
	if len(q.JobIDs) > MaxInspectRows {
		return nil, refuse("inspect.job_ids", fmt.Sprintf("%d ids; one answer holds at most %d", len(q.JobIDs), MaxInspectRows))
	}
	return q, nil
}

func parseStop(fields []member) (*Stop, error) {
	s := &Stop{}
	for _, m := range fields {
		if m.name != "job_ids" {
			return nil, refuse("stop."+label(m.name), "unknown field; want job_ids")
		}
		var err error
		if s.JobIDs, err = jobIDs("stop.job_ids", m.value); err != nil {
			return nil, err
		}
	}
	if len(s.JobIDs) == 0 {
		return nil, refuse("stop.job_ids", "selects nothing; give at least one id")
	}
	return s, nil
}

// jobIDs reads a list of ids and keeps each once, in the list's order.
func jobIDs(at string, raw []byte) ([]string, error) {
	return texts(at, raw, func(at, id string) error {
		if id == "." || id == ".." {
			return refuse(at, "no job has this id")
		}
		return nil
	})
}

func states(at string, raw []byte) ([]string, error) {
	return texts(at, raw, func(at, state string) error {
		if state == statePending {
			return refuse(at, "pending rows are not finished; use job_ids or overdue for them")
		}
		return nil
	})
}

// texts reads a list of texts that can be ids or states.
func texts(at string, raw []byte, check func(at, s string) error) ([]string, error) {
	items, err := elements(at, raw)
	if err != nil {
		return nil, err
	}
	kept := make([]string, 0, len(items))
	seen := make(map[string]struct{}, len(items))
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", at, i)
		s, err := text(at, item)
		if err == nil {
			err = word(at, s)
		}
		if err == nil {
			err = check(at, s)
		}
		if err != nil {
			return nil, err
		}
		if _, double := seen[s]; !double {
			seen[s] = struct{}{}
			kept = append(kept, s)
		}
	}
	return kept, nil
}

// moment reads a time as RFC 3339 writes it, with its offset.
func moment(at string, raw []byte) (*time.Time, error) {
	s, err := text(at, raw)
	if err != nil {
		return nil, err
	}
	var t time.Time
	if err := t.UnmarshalText([]byte(s)); err != nil {
		return nil, refuse(at, "want a time of RFC 3339, such as 2026-11-01T00:00:00Z")
	}
	return &t, nil
}
