package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"sumepoller/infra/settings"
)

// found is what RDS knows of an instance or a cluster.
type found struct {
	engine, host, name, resourceID string
	port                           int32
	iam                            bool
	secret                         *types.MasterUserSecret
	groups                         []types.VpcSecurityGroupMembership
	vpc                            string
	modify                         string // the command that changes it
}

// find asks RDS for the database and EC2 for its network. The notes are printed
// for the user.
func find(ctx context.Context, cfg aws.Config, w wish) (settings.Settings, []string, error) {
	db, err := describe(ctx, rds.NewFromConfig(cfg), w.db)
	if err != nil {
		return settings.Settings{}, nil, err
	}
	if db.engine != "postgres" && db.engine != "aurora-postgresql" {
		return settings.Settings{}, nil, fmt.Errorf("%s: runs %s; want PostgreSQL", w.db, db.engine)
	}
	s := settings.Settings{Name: w.name, Database: settings.Database{
		Host: db.host, Port: int(db.port), Name: db.name, Auth: settings.AuthSecret, AdminSecretARN: w.adminSecret,
	}}
	var notes []string
	if db.name == "" {
		s.Database.Name = "postgres"
		notes = append(notes, "database.name: RDS names none, so it is postgres; change it if the table belongs into another database")
	}
	if db.iam {
		s.Database.Auth, s.Database.ResourceID = settings.AuthIAM, db.resourceID
	} else {
		notes = append(notes, "database.auth: IAM login is off, so the roles get passwords that the stack makes")
	}
	for _, group := range db.groups {
		s.Database.SecurityGroupID = cmp.Or(s.Database.SecurityGroupID, aws.ToString(group.VpcSecurityGroupId))
	}
	switch {
	case w.adminSecret != "":
	case db.secret != nil:
		s.Database.AdminSecretARN, s.Database.KMSKeyARN = aws.ToString(db.secret.SecretArn), aws.ToString(db.secret.KmsKeyId)
	default:
		return s, nil, fmt.Errorf("%s: RDS does not keep the admin's password; set ADMIN_SECRET to the ARN of a secret with username and password, "+
			"or let RDS keep it: aws rds %s %s --manage-master-user-password --apply-immediately", w.db, db.modify, w.db)
	}
	s.VPC, err = network(ctx, ec2.NewFromConfig(cfg), db.vpc)
	return s, notes, err
}

// describe looks for an instance, then for a cluster. For an instance of a cluster
// it describes the cluster, whose endpoint follows the writer.
func describe(ctx context.Context, client *rds.Client, id string) (found, error) {
	out, err := client.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: &id})
	var missing *types.DBInstanceNotFoundFault
	if errors.As(err, &missing) || err == nil && len(out.DBInstances) == 0 {
		return describeCluster(ctx, client, id)
	}
	if err != nil {
		return found{}, fmt.Errorf("describe %s: %w", id, err)
	}
	db := out.DBInstances[0]
	if cluster := aws.ToString(db.DBClusterIdentifier); cluster != "" {
		return describeCluster(ctx, client, cluster)
	}
	if db.Endpoint == nil || db.DBSubnetGroup == nil {
		return found{}, fmt.Errorf("%s: has no endpoint yet; try again when it is available", id)
	}
	return found{
		engine: aws.ToString(db.Engine), host: aws.ToString(db.Endpoint.Address), port: aws.ToInt32(db.Endpoint.Port),
		name: aws.ToString(db.DBName), resourceID: aws.ToString(db.DbiResourceId), iam: aws.ToBool(db.IAMDatabaseAuthenticationEnabled),
		secret: db.MasterUserSecret, groups: db.VpcSecurityGroups, vpc: aws.ToString(db.DBSubnetGroup.VpcId),
		modify: "modify-db-instance --db-instance-identifier",
	}, nil
}

func describeCluster(ctx context.Context, client *rds.Client, id string) (found, error) {
	out, err := client.DescribeDBClusters(ctx, &rds.DescribeDBClustersInput{DBClusterIdentifier: &id})
	var missing *types.DBClusterNotFoundFault
	if errors.As(err, &missing) || err == nil && len(out.DBClusters) == 0 {
		return found{}, fmt.Errorf("%s: no such instance or cluster in this account and region", id)
	}
	if err != nil {
		return found{}, fmt.Errorf("describe %s: %w", id, err)
	}
	db := out.DBClusters[0]
	groups, err := client.DescribeDBSubnetGroups(ctx, &rds.DescribeDBSubnetGroupsInput{DBSubnetGroupName: db.DBSubnetGroup})
	if err != nil || len(groups.DBSubnetGroups) == 0 {
		return found{}, fmt.Errorf("describe the subnets of %s: %w", id, cmp.Or(err, errors.New("there are none")))
	}
	return found{
		engine: aws.ToString(db.Engine), host: aws.ToString(db.Endpoint), port: aws.ToInt32(db.Port),
		name: aws.ToString(db.DatabaseName), resourceID: aws.ToString(db.DbClusterResourceId), iam: aws.ToBool(db.IAMDatabaseAuthenticationEnabled),
		secret: db.MasterUserSecret, groups: db.VpcSecurityGroups, vpc: aws.ToString(groups.DBSubnetGroups[0].VpcId),
		modify: "modify-db-cluster --db-cluster-identifier",
	}, nil
}
