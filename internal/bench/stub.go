package main

import (
	"sumepoller/internal/bench/report"
)

func documents(*report.Report, string) error { return nil }
