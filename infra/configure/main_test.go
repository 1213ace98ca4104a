package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sumepoller/infra/settings"
)

// configure runs the program against the API and returns the settings as the
// stack reads them.
func configure(t *testing.T, answers map[string]string, db string) (settings.Settings, string, error) {
	t.Helper()
	_, cfg := serve(t, answers)
	path := filepath.Join(t.TempDir(), "settings.json")
	var out bytes.Buffer
	err := run(t.Context(), cfg, wish{db: db, name: "orders-poller", path: path}, &out)
	if err != nil {
		if _, missing := os.Stat(path); missing == nil {
			t.Errorf("wrote a file all the same")
		}
		return settings.Settings{}, out.String(), err
	}
	s, err := settings.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return s, out.String(), nil
}

func wanted() settings.Settings {
	s := settings.Defaults()
	s.Name = "orders-poller"
	s.VPC = &settings.VPC{
		ID: "vpc-0feedface0feedfac", AvailabilityZones: []string{"eu-central-1a", "eu-central-1b"},
		PrivateSubnetIDs: []string{"subnet-0000000000000000c", "subnet-0000000000000000d"},
	}
	s.Database = settings.Database{
		Host: "orders.cinventedexam.eu-central-1.rds.amazonaws.com", Port: 5433, Name: "shop", SecurityGroupID: "sg-0facade00facade00",
		AdminSecretARN: "arn:aws:secretsmanager:eu-central-1:111122223333:secret:rds!db-invented-AbCdEf",
		Auth:           settings.AuthIAM, ResourceID: "db-INVENTEDORDERS",
		KMSKeyARN: "arn:aws:kms:eu-central-1:111122223333:key/00000000-0000-4000-8000-00000000cafe",
	}
	return s
}

func TestConfigure_IAM(t *testing.T) {
	t.Parallel()
	got, out, err := configure(t, map[string]string{
		"DescribeDBInstances": instance(named + tokens + kept), "DescribeRouteTables": tables, "DescribeSubnets": subnets,
	}, "orders")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted(), got); diff != "" {
		t.Error(diff)
	}
	if strings.Count(out, "\n") != 1 {
		t.Errorf("got %q, want one line", out)
	}
}

func TestConfigure_Passwords(t *testing.T) {
	t.Parallel()
	got, out, err := configure(t, map[string]string{
		"DescribeDBInstances": instance(kept), "DescribeRouteTables": tables, "DescribeSubnets": subnets,
	}, "orders")
	if err != nil {
		t.Fatal(err)
	}
	want := wanted()
	want.Database.Auth, want.Database.ResourceID, want.Database.Name = settings.AuthSecret, "", "postgres"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(out, "database.name: ") || !strings.Contains(out, "database.auth: ") {
		t.Errorf("got %q, want what was assumed", out)
	}
}

func TestConfigure_Cluster(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"DescribeDBClusters": `<DBClusters><DBCluster><DBClusterIdentifier>shop</DBClusterIdentifier><Engine>aurora-postgresql</Engine>
			<Endpoint>shop.cluster-cinventedexam.eu-central-1.rds.amazonaws.com</Endpoint><Port>5432</Port><DatabaseName>shop</DatabaseName>
			<DbClusterResourceId>cluster-INVENTEDSHOP</DbClusterResourceId><DBSubnetGroup>g</DBSubnetGroup>
			<VpcSecurityGroups><VpcSecurityGroupMembership><VpcSecurityGroupId>sg-0facade00facade00</VpcSecurityGroupId></VpcSecurityGroupMembership></VpcSecurityGroups>` +
			tokens + kept + `</DBCluster></DBClusters>`,
		"DescribeDBSubnetGroups": `<DBSubnetGroups><DBSubnetGroup><DBSubnetGroupName>g</DBSubnetGroupName><VpcId>vpc-0feedface0feedfac</VpcId></DBSubnetGroup></DBSubnetGroups>`,
		"DescribeRouteTables":    tables, "DescribeSubnets": subnets,
	}
	want := wanted()
	want.Database.Host, want.Database.Port = "shop.cluster-cinventedexam.eu-central-1.rds.amazonaws.com", 5432
	want.Database.ResourceID = "cluster-INVENTEDSHOP"
	got, _, err := configure(t, answers, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	answers["DescribeDBInstances"] = instance(`<DBClusterIdentifier>shop</DBClusterIdentifier>`)
	if got, _, err = configure(t, answers, "shop-1"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestConfigure_Errors(t *testing.T) {
	t.Parallel()
	whole := instance(named + tokens + kept)
	for name, c := range map[string]struct {
		answers map[string]string
		want    string
	}{
		"an unknown identifier":             {nil, "orders: no such instance or cluster"},
		"another engine":                    {map[string]string{"DescribeDBInstances": strings.Replace(whole, "<Engine>postgres", "<Engine>mysql", 1)}, "orders: runs mysql"},
		"a password that RDS does not keep": {map[string]string{"DescribeDBInstances": instance(named + tokens)}, "modify-db-instance --db-instance-identifier orders --manage-master-user-password"},
		"an instance that is still made":    {map[string]string{"DescribeDBInstances": `<DBInstances><DBInstance><Engine>postgres</Engine></DBInstance></DBInstances>`}, "has no endpoint yet"},
		"no right to see the network":       {map[string]string{"DescribeDBInstances": whole}, "describe the route tables of vpc-0feedface0feedfac: "},
		"a default VPC with public subnets": {map[string]string{"DescribeDBInstances": whole, "DescribeRouteTables": strings.NewReplacer("transitGatewayId", "gatewayId", "natGatewayId", "gatewayId").Replace(tables), "DescribeSubnets": subnets}, "vpc-0feedface0feedfac: no subnet has a route to the internet"},
		"answer with an invalid value":      {map[string]string{"DescribeDBInstances": strings.Replace(whole, "sg-0facade00facade00", "sg-x", 1), "DescribeRouteTables": tables, "DescribeSubnets": subnets}, "database.security_group_id: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := configure(t, c.answers, "orders")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestConfigure_AdminSecret(t *testing.T) {
	t.Parallel()
	api, cfg := serve(t, map[string]string{"DescribeDBInstances": instance(named + tokens), "DescribeRouteTables": tables, "DescribeSubnets": subnets})
	path := filepath.Join(t.TempDir(), "settings.json")
	const secret = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:admin-AbCdEf"
	if err := run(t.Context(), cfg, wish{db: "orders", name: "a", adminSecret: secret, path: path}, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	s, err := settings.Load(path)
	if err != nil || s.Database.AdminSecretARN != secret || s.Database.KMSKeyARN != "" {
		t.Errorf("got %+v, %v", s.Database, err)
	}
	for _, form := range api.asked {
		if action := form.Get("Action"); !strings.HasPrefix(action, "Describe") {
			t.Errorf("asked to %s", action)
		}
	}
}

func TestConfigure_KeepsSettings(t *testing.T) {
	t.Parallel()
	_, cfg := serve(t, nil)
	path := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), cfg, wish{db: "orders", name: "a", path: path}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("got %v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "mine" {
		t.Errorf("got %q", data)
	}
}
