package stack_test

import (
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
	"github.com/google/go-cmp/cmp"

	"sumepoller/infra/stack"
	"sumepoller/internal/config"
)

// A changed id or placeholder would overwrite the key that a person put in; a
// changed generator would make a password that the database does not know.
// These stay as they are.
func TestSecrets_Unchanged(t *testing.T) {
	got := resources(t, given.app, "AWS::SecretsManager::Secret")
	want := map[string]resource{"SumeApiKey": {
		Type: "AWS::SecretsManager::Secret", DeletionPolicy: "Retain", UpdateReplacePolicy: "Retain",
		Properties: map[string]any{"Description": "The Sume API key: the key itself, or JSON with api_key", "SecretString": "REPLACE_ME"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	login := func(what, role string) resource {
		return resource{
			Type: "AWS::SecretsManager::Secret", DeletionPolicy: "Delete", UpdateReplacePolicy: "Delete",
			Properties: map[string]any{
				"Description": "Login of the database role " + role + "; migrate sets its password",
				"KmsKeyId":    ownKey,
				"GenerateSecretString": map[string]any{
					"ExcludePunctuation": true, "GenerateStringKey": "password", "PasswordLength": 40.0,
					"SecretStringTemplate": `{"username":"` + role + `"}`,
				},
			},
		}
	}
	want = map[string]resource{"PollerLogin": login("poller", "clips_poller"), "SubmitterLogin": login("submitter", "clips_submitter")}
	if diff := cmp.Diff(want, resources(t, passwords.app, "AWS::SecretsManager::Secret")); diff != "" {
		t.Error(diff)
	}
}

func TestSecrets_Placeholder(t *testing.T) {
	if stack.Placeholder != "REPLACE_ME" {
		t.Errorf("got %q", stack.Placeholder)
	}
}

func TestLogins_RoleNames(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"sume-poller-poller": {config.DatabaseUser: "sume_poller_poller", config.DatabaseAuth: config.DatabaseAuthIAM},
		"sume-poller-submit": {config.DatabaseUser: "sume_poller_submitter", config.DatabaseAuth: config.DatabaseAuthIAM},
		"sume-poller-migrate": {
			config.MigratePollerRole: "sume_poller_poller", config.MigrateSubmitRole: "sume_poller_submitter",
			config.MigrateRoleAuth: config.RoleAuthIAM, config.DatabaseSecretID: admin,
		},
	} {
		vars, _ := environment(t, given, name)
		for key, value := range want {
			if vars[key] != value {
				t.Errorf("%s: %s: got %q, want %q", name, key, vars[key], value)
			}
		}
	}
	for name, want := range map[string]map[string]string{
		"clips-poller": {config.DatabaseSecretID: `{"Ref":"PollerLogin"}`, config.DatabaseAuth: ""},
		"clips-submit": {config.DatabaseSecretID: `{"Ref":"SubmitterLogin"}`, config.DatabaseAuth: ""},
		"clips-migrate": {
			config.MigratePollerRole: "clips_poller", config.MigrateSubmitRole: "clips_submitter", config.MigrateRoleAuth: config.RoleAuthSecret,
			config.MigratePollerSecretID: `{"Ref":"PollerLogin"}`, config.MigrateSubmitSecretID: `{"Ref":"SubmitterLogin"}`,
		},
	} {
		vars, _ := environment(t, passwords, name)
		for key, value := range want {
			if vars[key] != value {
				t.Errorf("%s: %s: got %q, want %q", name, key, vars[key], value)
			}
		}
	}
}

func TestSecrets_GivenAPIKey(t *testing.T) {
	check(t, func() {
		passwords.app.ResourcePropertiesCountIs(jsii.String("AWS::SecretsManager::Secret"),
			assertions.Match_ObjectLike(&map[string]any{"SecretString": assertions.Match_AnyValue()}), jsii.Number(0))
	})
}
