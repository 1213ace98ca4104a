package settings

// FunctionName returns the full name of a function of the stack, such as
// sume-poller-submit. It is fixed: metrics, log groups and grants name it.
func (s Settings) FunctionName(short string) string { return s.Name + "-" + short }
