package devstack

import "context"

// Actor builds the function that behaves as its payload says.
func Actor(ctx context.Context) (string, error) {
	return build(ctx, "actor", "./internal/devstack/testdata/actor")
}
