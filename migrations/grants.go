package migrations

import (
	"slices"
	"strings"
)

// Tables are the product's tables, without the one that keeps the version.
var Tables = []string{"read_budget", "video_jobs", "video_submissions"}

// Rights are the privileges of one role.
type Rights []Grant

// Grant gives the same privileges on several tables.
type Grant struct {
	Privileges string // as GRANT takes them
	Tables     []string
}

// The rights of the functions' roles: what their statements need, and no more.
// No role may delete.
var (
	PollerRights = Rights{
		{"SELECT, INSERT, UPDATE", []string{"video_jobs", "read_budget"}},
		{"SELECT", []string{"video_submissions"}},
	}
	SubmitterRights = Rights{
		{"SELECT, INSERT, UPDATE", []string{"video_submissions"}},
		{"SELECT, INSERT", []string{"video_jobs"}},
	}
)

// On returns the privileges on a table, empty where there are none.
func (r Rights) On(table string) string {
	for _, grant := range r {
		if slices.Contains(grant.Tables, table) {
			return grant.Privileges
		}
	}
	return ""
}

// Statements returns the GRANT statements for a role. They contain the role as
// it is given.
func (r Rights) Statements(role string) []string {
	var statements []string
	for _, grant := range r {
		statements = append(statements, "GRANT "+grant.Privileges+" ON "+strings.Join(grant.Tables, ", ")+" TO "+role)
	}
	return statements
}
