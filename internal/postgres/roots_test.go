package postgres_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"testing"
	"time"
)

// It fails 90 days before the first root expires, in time for make rds-roots.
func TestRDSRoots_NotExpiring(t *testing.T) {
	t.Parallel()
	bundle, err := os.ReadFile("roots/rds.pem")
	if err != nil {
		t.Fatal(err)
	}
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if time.Until(cert.NotAfter) < 90*24*time.Hour {
			t.Errorf("%s expires on %s: run make rds-roots", cert.Subject.CommonName, cert.NotAfter.Format(time.DateOnly))
		}
	}
}
