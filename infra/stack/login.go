package stack

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"

	"sumepoller/internal/config"
)

// login is how one function logs in to the database: as a role, with the password
// in a secret or with IAM tokens.
type login struct {
	role   string
	secret *string // ARN; nil: IAM tokens
}

type logins struct{ poller, submitter login }

// logins names the roles after the stack, so that two stacks can share a database.
// Without IAM the stack makes the passwords, and migrate sets them.
func (a *app) logins() logins {
	return logins{poller: a.login("Poller", "poller"), submitter: a.login("Submitter", "submitter")}
}

// login makes one role's login. The properties of the secret must never change:
// CloudFormation would make another password, which the database does not know.
func (a *app) login(id, suffix string) login {
	l := login{role: strings.ReplaceAll(a.settings.Name, "-", "_") + "_" + suffix}
	if a.db.iam {
		return l
	}
	template, err := json.Marshal(map[string]string{"username": l.role})
	if err != nil {
		panic(err) // a map of strings
	}
	secret := awssecretsmanager.NewSecret(a.stack, jsii.String(id+"Login"), &awssecretsmanager.SecretProps{
		Description:   jsii.String("Login of the database role " + l.role + "; migrate sets its password"),
		EncryptionKey: a.ownKey(id + "LoginKmsKey"),
		GenerateSecretString: &awssecretsmanager.SecretStringGenerator{
			SecretStringTemplate: jsii.String(string(template)), GenerateStringKey: jsii.String("password"),
			PasswordLength: jsii.Number(40), ExcludePunctuation: jsii.Bool(true),
		},
	})
	secret.Node().DefaultChild().(awssecretsmanager.CfnSecret).OverrideLogicalId(jsii.String(id + "Login"))
	l.secret = secret.SecretArn()
	return l
}

// env returns the variables with the database and the login of a function.
func (l login) env(db database) map[string]string {
	env := db.env()
	if l.secret != nil {
		env[config.DatabaseSecretID] = *l.secret
		return env
	}
	env[config.DatabaseUser], env[config.DatabaseAuth] = l.role, config.DatabaseAuthIAM
	return env
}

// env returns the variables that name the server. A secret that RDS keeps holds
// only user and password.
func (db database) env() map[string]string {
	return map[string]string{
		config.DatabaseHost: *db.host,
		config.DatabasePort: strconv.Itoa(db.port),
		config.DatabaseName: db.name,
	}
}
