package devstack

import "context"

// Actor builds the function that does what its payload says.
func Actor(ctx context.Context) (string, error) {
	return build(ctx, "actor", "./internal/devstack/testdata/actor")
}
