package stack_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNetwork_NothingMade(t *testing.T) {
	for id, r := range resources(t, given.app) {
		if strings.HasPrefix(r.Type, "AWS::RDS::") || strings.HasPrefix(r.Type, "AWS::EC2::") && !strings.HasPrefix(r.Type, "AWS::EC2::SecurityGroup") {
			t.Errorf("got %s, a %s", id, r.Type)
		}
	}
	if given.stacks.Data != nil {
		t.Error("got a data stack")
	}
}

func TestNetwork_Subnets(t *testing.T) {
	group, _ := only(t, given.app, "AWS::EC2::SecurityGroup")
	for id, r := range resources(t, given.app, "AWS::Lambda::Function") {
		if _, named := r.Properties["FunctionName"]; !named {
			continue // the trigger's function
		}
		want := map[string]any{
			"SecurityGroupIds": []any{map[string]any{"Fn::GetAtt": []any{group, "GroupId"}}},
			"SubnetIds":        []any{"subnet-0decade00decade0a", "subnet-0decade00decade0b"},
		}
		if diff := cmp.Diff(want, r.Properties["VpcConfig"]); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
}

func TestNetwork_Egress(t *testing.T) {
	for name, c := range map[string]struct {
		of   synthesis
		port float64
	}{"given": {given, 5432}, "made": {made, 5432}, "passwords": {passwords, 6432}} {
		_, group := only(t, c.of.app, "AWS::EC2::SecurityGroup")
		want := []any{map[string]any{
			"CidrIp": "0.0.0.0/0", "Description": "HTTPS to Sume and AWS", "IpProtocol": "tcp", "FromPort": 443.0, "ToPort": 443.0,
		}}
		if diff := cmp.Diff(want, group.Properties["SecurityGroupEgress"]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got := group.Properties["SecurityGroupIngress"]; got != nil {
			t.Errorf("%s: got an ingress rule: %v", name, got)
		}
		_, egress := only(t, c.of.app, "AWS::EC2::SecurityGroupEgress")
		if p := egress.Properties; p["FromPort"] != c.port || p["ToPort"] != c.port || p["CidrIp"] != nil || p["DestinationSecurityGroupId"] == nil {
			t.Errorf("%s: got %v, want port %v of the database's group", name, p, c.port)
		}
	}
}

func TestNetwork_Ingress(t *testing.T) {
	for name, c := range map[string]struct {
		of       synthesis
		database string
	}{
		"given": {given, "sg-0facade00facade00"},
		"made":  {made, "ImportValue"},
	} {
		group, _ := only(t, c.of.app, "AWS::EC2::SecurityGroup")
		_, ingress := only(t, c.of.app, "AWS::EC2::SecurityGroupIngress")
		p := ingress.Properties
		if got, want := asJSON(t, p["SourceSecurityGroupId"]), `{"Fn::GetAtt":["`+group+`","GroupId"]}`; got != want {
			t.Errorf("%s: from %s, want from %s", name, got, want)
		}
		if got := asJSON(t, p["GroupId"]); !strings.Contains(got, c.database) {
			t.Errorf("%s: into %s, want into %s", name, got, c.database)
		}
		if p["CidrIp"] != nil || p["CidrIpv6"] != nil || p["FromPort"] != 5432.0 || p["ToPort"] != 5432.0 || p["IpProtocol"] != "tcp" {
			t.Errorf("%s: got %v, want port 5432 alone", name, p)
		}
	}
}
