package stack_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A change of an id or of a create-only property replaces the resource, and with it
// the table. Change this list only for new resources.
func TestData_CreateOnlyProperties(t *testing.T) {
	pinned := map[string]struct {
		kind   string
		create map[string]any
	}{
		"DatabaseB269D8BB": {"AWS::RDS::DBInstance", map[string]any{
			"DBInstanceIdentifier": "sume-poller", "DBName": "sume", "MasterUsername": "sume_admin", "Engine": "postgres",
			"StorageEncrypted": true, "KmsKeyId": nil, "DBSnapshotIdentifier": nil, "SourceDBInstanceIdentifier": nil, "Port": "5432",
			"DBSubnetGroupName": map[string]any{"Ref": "DatabaseSubnetGroup7D60F180"}, "AvailabilityZone": nil, "CharacterSetName": nil,
		}},
		"DatabaseSubnetGroup7D60F180":       {"AWS::RDS::DBSubnetGroup", map[string]any{"DBSubnetGroupName": nil}},
		"DatabaseParameterGroup2A921026":    {"AWS::RDS::DBParameterGroup", map[string]any{"Family": "postgres17", "Description": "Parameter group for postgres17", "DBParameterGroupName": nil}},
		"DatabaseGroupB493B4E2":             {"AWS::EC2::SecurityGroup", map[string]any{"GroupDescription": "Database of sume-poller", "GroupName": nil, "VpcId": map[string]any{"Ref": "Vpc8378EB38"}}},
		"Vpc8378EB38":                       {"AWS::EC2::VPC", map[string]any{"CidrBlock": "10.0.0.0/16", "InstanceTenancy": "default"}},
		"VpcnatSubnet1SubnetC00CB652":       {"AWS::EC2::Subnet", map[string]any{"CidrBlock": "10.0.0.0/24"}},
		"VpcnatSubnet2SubnetC90DE006":       {"AWS::EC2::Subnet", map[string]any{"CidrBlock": "10.0.1.0/24"}},
		"VpcfunctionsSubnet1SubnetAA838064": {"AWS::EC2::Subnet", map[string]any{"CidrBlock": "10.0.2.0/24"}},
		"VpcfunctionsSubnet2SubnetC5D7E58E": {"AWS::EC2::Subnet", map[string]any{"CidrBlock": "10.0.3.0/24"}},
		"VpcdatabaseSubnet1SubnetD53A427B":  {"AWS::EC2::Subnet", map[string]any{"CidrBlock": "10.0.4.0/24"}},
		"VpcdatabaseSubnet2Subnet75663D63":  {"AWS::EC2::Subnet", map[string]any{"CidrBlock": "10.0.5.0/24"}},
	}
	all := resources(t, made.data)
	for id, want := range pinned {
		got, ok := all[id]
		if !ok || got.Type != want.kind {
			t.Errorf("%s: got %q, want %s", id, got.Type, want.kind)
			continue
		}
		for key, value := range want.create {
			if diff := cmp.Diff(value, got.Properties[key]); diff != "" {
				t.Errorf("%s: %s: %s", id, key, diff)
			}
		}
	}
	for id, r := range resources(t, made.data, "AWS::RDS::DBInstance", "AWS::RDS::DBSubnetGroup", "AWS::RDS::DBParameterGroup", "AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::SecurityGroup") {
		if _, ok := pinned[id]; !ok {
			t.Errorf("%s, a %s, is not pinned", id, r.Type)
		}
	}
}

// CloudFormation keeps an export as long as the app stack imports it.
func TestData_Exports(t *testing.T) {
	var template struct {
		Outputs map[string]struct{ Export map[string]any }
	}
	remarshal(t, made.data.ToJSON(), &template)
	var names []string
	for id, out := range template.Outputs {
		names = append(names, id)
		if out.Export["Name"] != "sume-poller-data:"+id {
			t.Errorf("%s: exported as %v", id, out.Export["Name"])
		}
	}
	want := []string{
		"ExportsOutputFnGetAttDatabaseB269D8BBDbiResourceIdFFE1C191",
		"ExportsOutputFnGetAttDatabaseB269D8BBEndpointAddressA4DBD059",
		"ExportsOutputFnGetAttDatabaseB269D8BBMasterUserSecretSecretArn9B9C4322",
		"ExportsOutputFnGetAttDatabaseGroupB493B4E2GroupId4F5C738C",
		"ExportsOutputRefVpc8378EB38272D6E3A",
		"ExportsOutputRefVpcfunctionsSubnet1SubnetAA838064B02624F7",
		"ExportsOutputRefVpcfunctionsSubnet2SubnetC5D7E58EE890AB1E",
	}
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(names))); diff != "" {
		t.Error(diff)
	}
}

func TestData_Retained(t *testing.T) {
	if protected := made.stacks.Data.TerminationProtection(); protected == nil || !*protected {
		t.Error("the stack may be terminated")
	}
	for id, r := range resources(t, made.data) {
		if r.DeletionPolicy != "RetainExceptOnCreate" || r.UpdateReplacePolicy != "Retain" {
			t.Errorf("%s: got %q and %q, want it kept", id, r.DeletionPolicy, r.UpdateReplacePolicy)
		}
	}
}

func TestData_Database(t *testing.T) {
	_, db := only(t, made.data, "AWS::RDS::DBInstance")
	for key, want := range map[string]any{
		"StorageEncrypted": true, "PubliclyAccessible": false, "DeletionProtection": true, "BackupRetentionPeriod": 14.0,
		"DeleteAutomatedBackups": false, "CopyTagsToSnapshot": true, "ManageMasterUserPassword": true, "MasterUserPassword": nil,
		"AutoMinorVersionUpgrade": true, "EngineVersion": "17",
	} {
		if got := db.Properties[key]; got != want {
			t.Errorf("%s: got %v, want %v", key, got, want)
		}
	}
	_, parameters := only(t, made.data, "AWS::RDS::DBParameterGroup")
	if got := asJSON(t, parameters.Properties["Parameters"]); got != `{"rds.force_ssl":"1"}` {
		t.Errorf("got parameters %s, want forced TLS", got)
	}
}

// IAM logins take up to 1,000 MiB of the instance; a micro instance has 1,024.
func TestData_InstanceForIAM(t *testing.T) {
	_, db := only(t, made.data, "AWS::RDS::DBInstance")
	if db.Properties["EnableIAMDatabaseAuthentication"] != true || db.Properties["DBInstanceClass"] != "db.t4g.small" {
		t.Errorf("got %v on a %v", db.Properties["EnableIAMDatabaseAuthentication"], db.Properties["DBInstanceClass"])
	}
}

func TestData_Network(t *testing.T) {
	counts := map[string]int{}
	for _, r := range resources(t, made.data) {
		counts[r.Type]++
	}
	want := map[string]int{"AWS::EC2::VPC": 1, "AWS::EC2::Subnet": 6, "AWS::EC2::NatGateway": 1, "AWS::RDS::DBInstance": 1, "AWS::Lambda::Function": 0}
	for kind, n := range want {
		if counts[kind] != n {
			t.Errorf("got %d of %s, want %d", counts[kind], kind, n)
		}
	}
	for id, r := range resources(t, made.data, "AWS::EC2::Subnet") {
		if r.Properties["MapPublicIpOnLaunch"] != false {
			t.Errorf("%s assigns public addresses", id)
		}
	}
	_, group := only(t, made.data, "AWS::RDS::DBSubnetGroup")
	for _, subnet := range group.Properties["SubnetIds"].([]any) {
		id := subnet.(map[string]any)["Ref"].(string)
		for route, r := range resources(t, made.data, "AWS::EC2::Route") {
			table := r.Properties["RouteTableId"].(map[string]any)["Ref"]
			for _, a := range resources(t, made.data, "AWS::EC2::SubnetRouteTableAssociation") {
				if asJSON(t, a.Properties["SubnetId"]) == `{"Ref":"`+id+`"}` && a.Properties["RouteTableId"].(map[string]any)["Ref"] == table {
					t.Errorf("%s leads out of the database's %s", route, id)
				}
			}
		}
	}
}

func TestData_SameApp(t *testing.T) {
	kinds := func(s synthesis) []string {
		count := map[string]bool{}
		for _, r := range resources(t, s.app) {
			count[r.Type] = true
		}
		return slices.Sorted(maps.Keys(count))
	}
	if diff := cmp.Diff(kinds(given), kinds(made)); diff != "" {
		t.Error(diff)
	}
}
