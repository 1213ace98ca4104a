package config

// Names of the environment variables. The functions read them, the stack sets
// them. A test compares this list with the tags of the configurations.
const (
	APIKeySecretID = "SUME_API_KEY_SECRET_ID"
	APIBaseURL     = "SUME_API_BASE_URL"
	APIAuthMode    = "SUME_API_AUTH_MODE"
	RequestTimeout = "SUME_REQUEST_TIMEOUT"
	ReadsPerMinute = "SUME_READS_PER_MINUTE"
	ReadsPerDay    = "SUME_READS_PER_DAY"

	DatabaseURL      = "DATABASE_URL"
	DatabaseSecretID = "DATABASE_SECRET_ID"
	DatabaseHost     = "DATABASE_HOST"
	DatabasePort     = "DATABASE_PORT"
	DatabaseName     = "DATABASE_NAME"
	DatabaseUser     = "DATABASE_USER"
	DatabaseAuth     = "DATABASE_AUTH"
	DatabaseMaxConns = "DATABASE_MAX_CONNS"

	PollBudget          = "POLL_BUDGET"
	PollConcurrency     = "POLL_CONCURRENCY"
	PollLease           = "POLL_LEASE"
	PollDefaultInterval = "POLL_DEFAULT_INTERVAL"
	PollMinInterval     = "POLL_MIN_INTERVAL"
	PollMaxInterval     = "POLL_MAX_INTERVAL"
	PollBackoffMax      = "POLL_BACKOFF_MAX"

	LogLevel = "LOG_LEVEL"

	// Of the migrating function. Without the two roles it only migrates.
	MigratePollerRole     = "MIGRATE_POLLER_ROLE"      // role of the poller; created if it is missing
	MigrateSubmitRole     = "MIGRATE_SUBMIT_ROLE"      // role of the submitter
	MigrateRoleAuth       = "MIGRATE_ROLE_AUTH"        // how both log in: RoleAuthIAM or RoleAuthSecret
	MigratePollerSecretID = "MIGRATE_POLLER_SECRET_ID" // secret with the poller's login; RoleAuthSecret only
	MigrateSubmitSecretID = "MIGRATE_SUBMIT_SECRET_ID" // secret with the submitter's login
)

// Variables that Lambda sets.
const (
	FunctionName   = "AWS_LAMBDA_FUNCTION_NAME"
	FunctionMemory = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE" // MiB
)

// authModes are the values of SUME_API_AUTH_MODE, each with the header line
// that carries the key, up to the key.
var authModes = map[string]string{
	"bearer":    "Authorization: Bearer ",
	"x-api-key": "X-Api-Key: ",
}

// DatabaseAuthIAM is the value of DATABASE_AUTH.
const DatabaseAuthIAM = "iam"

// Values of MIGRATE_ROLE_AUTH.
const (
	RoleAuthIAM    = "iam"
	RoleAuthSecret = "secret"
)
