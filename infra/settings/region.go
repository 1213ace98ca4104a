package settings

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Place is where a stack stands. Empty fields are left to whoever deploys.
type Place struct{ Partition, Region, Account string }

// Place reads the place out of the database's secret, so that a deploy with the
// credentials of another account or region is refused before it changes
// anything. A new database has no place yet.
func (s Settings) Place() Place { return placeOf(s.Database.AdminSecretARN) }

// placeOf reads an ARN that has been checked; an empty one has no place.
func placeOf(arn string) Place {
	parts := strings.Split(arn, ":")
	if len(parts) < 5 {
		return Place{}
	}
	return Place{Partition: parts[1], Region: parts[3], Account: parts[4]}
}

var zoneRegion = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-\d`)

// sameRegion reports what lies in another region than the database: a function
// reads secrets and uses keys of its own region alone.
func (r *reader) sameRegion(s Settings) {
	region := s.Place().Region
	if region == "" {
		region = placeOf(s.APIKeySecretARN).Region
	}
	if region == "" {
		return
	}
	for _, other := range []struct{ key, arn string }{
		{"database.kms_key_arn", s.Database.KMSKeyARN},
		{"sume_api_key_secret_arn", s.APIKeySecretARN},
		{"kms_key_arn", s.KMSKeyARN},
	} {
		if at := placeOf(other.arn).Region; at != "" && at != region {
			r.add(other.key, "lies in "+at, "one in "+region)
		}
	}
	if s.VPC == nil {
		return
	}
	if i := slices.IndexFunc(s.VPC.AvailabilityZones, func(zone string) bool { return zoneRegion.FindString(zone) != region }); i >= 0 {
		r.add("vpc.availability_zones", s.VPC.AvailabilityZones[i]+" lies elsewhere", "zones of "+region)
	}
}

// Retention times that CloudWatch Logs knows, in days.
var retentionDays = []int{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}

func retention(days int) bool { return slices.Contains(retentionDays, days) }

func retentions() string { return strings.Trim(fmt.Sprint(retentionDays), "[]") }
