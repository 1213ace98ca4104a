package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"sumepoller/infra/settings"
)

// network chooses one subnet in each zone from which a function reaches the
// internet. A route to an internet gateway does not do: a function has no public
// address.
func network(ctx context.Context, client *ec2.Client, vpc string) (*settings.VPC, error) {
	filters := []types.Filter{{Name: aws.String("vpc-id"), Values: []string{vpc}}}
	var tables []types.RouteTable
	for pages := ec2.NewDescribeRouteTablesPaginator(client, &ec2.DescribeRouteTablesInput{Filters: filters}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("describe the route tables of %s: %w", vpc, err)
		}
		tables = append(tables, page.RouteTables...)
	}
	var subnets []types.Subnet
	for pages := ec2.NewDescribeSubnetsPaginator(client, &ec2.DescribeSubnetsInput{Filters: filters}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("describe the subnets of %s: %w", vpc, err)
		}
		subnets = append(subnets, page.Subnets...)
	}
	chosen := choose(subnets, tables)
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%s: no subnet has a route to the internet that a function can use (a default route to a NAT or transit gateway); "+
			"add a private subnet behind a NAT gateway and ask again", vpc)
	}
	v := &settings.VPC{ID: vpc}
	for _, s := range chosen {
		v.AvailabilityZones = append(v.AvailabilityZones, aws.ToString(s.AvailabilityZone))
		v.PrivateSubnetIDs = append(v.PrivateSubnetIDs, aws.ToString(s.SubnetId))
	}
	return v, nil
}

// choose takes, in each zone, the subnet with the most free addresses among those
// with a route to the internet.
func choose(subnets []types.Subnet, tables []types.RouteTable) []types.Subnet {
	out, mainOut := leadOut(tables)
	var fit []types.Subnet
	for _, s := range subnets {
		if leads, own := out[aws.ToString(s.SubnetId)]; leads || !own && mainOut {
			fit = append(fit, s)
		}
	}
	slices.SortFunc(fit, func(a, b types.Subnet) int {
		return cmp.Or(
			strings.Compare(aws.ToString(a.AvailabilityZone), aws.ToString(b.AvailabilityZone)),
			-cmp.Compare(aws.ToInt32(a.AvailableIpAddressCount), aws.ToInt32(b.AvailableIpAddressCount)),
			strings.Compare(aws.ToString(a.SubnetId), aws.ToString(b.SubnetId)),
		)
	})
	return slices.CompactFunc(fit, func(a, b types.Subnet) bool {
		return aws.ToString(a.AvailabilityZone) == aws.ToString(b.AvailabilityZone)
	})
}

// leadOut reports for each subnet with a route table whether that leads to the
// internet, and whether the main table does, which serves all other subnets.
func leadOut(tables []types.RouteTable) (own map[string]bool, main bool) {
	own = map[string]bool{}
	for _, table := range tables {
		leads := slices.ContainsFunc(table.Routes, func(r types.Route) bool {
			return aws.ToString(r.DestinationCidrBlock) == "0.0.0.0/0" && r.State == types.RouteStateActive &&
				cmp.Or(aws.ToString(r.NatGatewayId), aws.ToString(r.TransitGatewayId), aws.ToString(r.NetworkInterfaceId)) != ""
		})
		for _, a := range table.Associations {
			if aws.ToBool(a.Main) {
				main = leads
			} else if id := aws.ToString(a.SubnetId); id != "" {
				own[id] = leads
			}
		}
	}
	return own, main
}
