package settings

import (
	"regexp"
	"slices"
	"strings"
)

// Place is where a stack is deployed. An empty field is decided at deploy.
type Place struct{ Partition, Region, Account string }

// Place returns the place in the ARN of the database's secret. With it, a deploy
// with the credentials of another account or region is refused before it changes
// anything. A new database has no place.
func (s Settings) Place() Place { return placeOf(s.Database.AdminSecretARN) }

// placeOf returns the place in a valid ARN; an empty ARN has none.
func placeOf(arn string) Place {
	parts := strings.Split(arn, ":")
	if len(parts) < 5 {
		return Place{}
	}
	return Place{Partition: parts[1], Region: parts[3], Account: parts[4]}
}

var zoneRegion = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-\d`)

// sameRegion reports keys and zones in another region than the database. A
// function uses secrets and keys of its region only.
func (c *checker) sameRegion(s Settings) {
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
			c.add(other.key, "is in "+at, "one in "+region)
		}
	}
	if s.VPC == nil {
		return
	}
	if i := slices.IndexFunc(s.VPC.AvailabilityZones, func(zone string) bool { return zoneRegion.FindString(zone) != region }); i >= 0 {
		c.add("vpc.availability_zones", s.VPC.AvailabilityZones[i]+" is in another region", "zones of "+region)
	}
}
