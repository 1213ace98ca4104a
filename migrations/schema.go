package migrations

import (
	"fmt"
	"slices"
	"strings"
)

// Schema returns the whole schema as plain SQL, for those who migrate by hand
// with psql. It is one transaction and may be run again. It adopts an existing
// video_jobs as Up does and leaves the version table as Up would, so that Up then
// has nothing to do. One thing differs: an index that an adopted table lacks is
// built while writers wait.
func Schema() (string, error) {
	grants := append(PollerRights.Statements("<poller>"), SubmitterRights.Statements("<submitter>")...)
	head := fmt.Sprintf(headSQL, strings.Join(grants, ";\n--   ")+";", dueIndexConcurrently)
	parts := slices.Concat([]string{head, adoptSQL, structureSQL, tablesSQL, addSQL, trialSQL}, steps, []string{indexSQL, countVersions(Latest), "COMMIT;\n"})
	return strings.Join(parts, "\n"), nil
}

// countVersions records the steps up to a version.
func countVersions(to int64) string { return fmt.Sprintf(versionSQL, to) }
