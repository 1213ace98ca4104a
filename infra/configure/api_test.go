package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// api answers as the Query APIs of RDS and EC2 do: a form in, XML out. Answers
// maps an action to its result; an action without one is refused as RDS refuses
// an unknown identifier.
type api struct {
	answers map[string]string

	mu    sync.Mutex
	asked []url.Values
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	action := r.PostForm.Get("Action")
	a.mu.Lock()
	a.asked = append(a.asked, maps.Clone(r.PostForm))
	a.mu.Unlock()
	w.Header().Set("Content-Type", "text/xml")
	body, ok := a.answers[action]
	switch {
	case !ok && action == "DescribeDBInstances":
		refuse(w, http.StatusNotFound, "DBInstanceNotFound")
	case !ok && action == "DescribeDBClusters":
		refuse(w, http.StatusNotFound, "DBClusterNotFoundFault")
	case !ok:
		refuse(w, http.StatusForbidden, "AccessDenied")
	case strings.HasPrefix(action, "DescribeDB"):
		fmt.Fprintf(w, `<%[1]sResponse xmlns="http://rds.amazonaws.com/doc/2014-10-31/"><%[1]sResult>%[2]s</%[1]sResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></%[1]sResponse>`, action, body)
	default:
		fmt.Fprintf(w, `<%[1]sResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId>%[2]s</%[1]sResponse>`, action, body)
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `<ErrorResponse><Error><Type>Sender</Type><Code>`+code+`</Code><Message>not here</Message></Error><RequestId>r</RequestId></ErrorResponse>`)
}

// serve starts the API and returns a configuration for it.
func serve(t *testing.T, answers map[string]string) (*api, aws.Config) {
	t.Helper()
	a := &api{answers: answers}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return a, aws.Config{
		Region: "eu-central-1", BaseEndpoint: aws.String(server.URL), HTTPClient: server.Client(),
		Credentials:      credentials.NewStaticCredentialsProvider("id", "secret", ""),
		RetryMaxAttempts: 1,
	}
}

// instance returns an RDS instance as DescribeDBInstances shows it.
func instance(inner string) string {
	return `<DBInstances><DBInstance><DBInstanceIdentifier>orders</DBInstanceIdentifier><Engine>postgres</Engine>
		<Endpoint><Address>orders.cinventedexam.eu-central-1.rds.amazonaws.com</Address><Port>5433</Port></Endpoint>
		<DbiResourceId>db-INVENTEDORDERS</DbiResourceId>
		<VpcSecurityGroups><VpcSecurityGroupMembership><VpcSecurityGroupId>sg-0facade00facade00</VpcSecurityGroupId><Status>active</Status></VpcSecurityGroupMembership></VpcSecurityGroups>
		<DBSubnetGroup><DBSubnetGroupName>g</DBSubnetGroupName><VpcId>vpc-0feedface0feedfac</VpcId></DBSubnetGroup>` + inner + `</DBInstance></DBInstances>`
}

const (
	named  = `<DBName>shop</DBName>`
	tokens = `<IAMDatabaseAuthenticationEnabled>true</IAMDatabaseAuthenticationEnabled>`
	kept   = `<MasterUserSecret><SecretArn>arn:aws:secretsmanager:eu-central-1:111122223333:secret:rds!db-invented-AbCdEf</SecretArn><SecretStatus>active</SecretStatus>
		<KmsKeyId>arn:aws:kms:eu-central-1:111122223333:key/00000000-0000-4000-8000-00000000cafe</KmsKeyId></MasterUserSecret>`
)

// Four subnets in two zones: a public one, two behind NAT gateways in the same
// zone, one that reaches the internet by the main route table and a transit gateway,
// and one without a route.
const (
	subnets = `<subnetSet>
		<item><subnetId>subnet-0000000000000000a</subnetId><availabilityZone>eu-central-1a</availabilityZone><availableIpAddressCount>250</availableIpAddressCount></item>
		<item><subnetId>subnet-0000000000000000b</subnetId><availabilityZone>eu-central-1a</availabilityZone><availableIpAddressCount>20</availableIpAddressCount></item>
		<item><subnetId>subnet-0000000000000000c</subnetId><availabilityZone>eu-central-1a</availabilityZone><availableIpAddressCount>200</availableIpAddressCount></item>
		<item><subnetId>subnet-0000000000000000d</subnetId><availabilityZone>eu-central-1b</availabilityZone><availableIpAddressCount>9</availableIpAddressCount></item>
		<item><subnetId>subnet-0000000000000000e</subnetId><availabilityZone>eu-central-1c</availabilityZone><availableIpAddressCount>250</availableIpAddressCount></item>
		</subnetSet>`
	tables = `<routeTableSet>
		<item><routeTableId>rtb-main</routeTableId><associationSet><item><main>true</main></item></associationSet>
			<routeSet><item><destinationCidrBlock>0.0.0.0/0</destinationCidrBlock><transitGatewayId>tgw-1</transitGatewayId><state>active</state></item></routeSet></item>
		<item><routeTableId>rtb-public</routeTableId><associationSet><item><main>false</main><subnetId>subnet-0000000000000000a</subnetId></item></associationSet>
			<routeSet><item><destinationCidrBlock>0.0.0.0/0</destinationCidrBlock><gatewayId>igw-1</gatewayId><state>active</state></item></routeSet></item>
		<item><routeTableId>rtb-nat</routeTableId><associationSet><item><main>false</main><subnetId>subnet-0000000000000000b</subnetId></item><item><main>false</main><subnetId>subnet-0000000000000000c</subnetId></item></associationSet>
			<routeSet><item><destinationCidrBlock>10.0.0.0/16</destinationCidrBlock><gatewayId>local</gatewayId><state>active</state></item><item><destinationCidrBlock>0.0.0.0/0</destinationCidrBlock><natGatewayId>nat-1</natGatewayId><state>active</state></item></routeSet></item>
		<item><routeTableId>rtb-dead</routeTableId><associationSet><item><main>false</main><subnetId>subnet-0000000000000000e</subnetId></item></associationSet>
			<routeSet><item><destinationCidrBlock>0.0.0.0/0</destinationCidrBlock><natGatewayId>nat-2</natGatewayId><state>blackhole</state></item></routeSet></item>
		</routeTableSet>`
)
