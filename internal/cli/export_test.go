package cli

// ShowProgress is showProgress for the tests.
var ShowProgress = showProgress
