package config

// Names of the environment variables, each in this one place: the functions
// read them and the stack sets them.
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
)

// Names that Lambda itself sets.
const (
	FunctionName   = "AWS_LAMBDA_FUNCTION_NAME"
	FunctionMemory = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE" // MiB
)

// Values of SUME_API_AUTH_MODE and DATABASE_AUTH.
const (
	AuthModeBearer  = "bearer"
	AuthModeHeader  = "x-api-key"
	DatabaseAuthIAM = "iam"
)
