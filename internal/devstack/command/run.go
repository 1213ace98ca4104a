package main

import "context"

func run(context.Context) int { return 0 }
