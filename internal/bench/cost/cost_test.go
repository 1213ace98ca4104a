package cost_test

import (
	"math"
	"testing"

	"sumepoller/internal/bench/cost"
)

func TestEveryWayIsThePricesTimesItsCounts(t *testing.T) {
	t.Parallel()
	p := cost.Prices{
		LambdaGBSecond: 1, LambdaMillion: 1e6, FargateVCPUHour: 4, FargateGBHour: 2, StepFunctionsThousand: 1000,
		SQSMillion: 1e6, SchedulerMillion: 1e6,
	}
	l := cost.Load{Jobs: 10, Awake: 100, Runs: 20, IdleTick: 1, Render: 31, Interval: 15, Allowance: 29}
	perRead := 900 * (0.2*0.25 + 1) // 3 reads × 10 jobs × 30 days
	for name, c := range map[string]struct {
		way  cost.Way
		want float64
	}{
		"ours":           {p.Ours(l), 120*30*0.25 + 600 + 600},
		"fargate":        {p.Fargate(l), 720 + 720},
		"step functions": {p.StepFunctions(l), 11*300 + perRead},
		"sqs":            {p.SQS(l), 2700 + 648_000 + perRead},
		"schedules":      {p.Schedules(l), 900 + perRead},
	} {
		if got := c.way.Total(); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		if over := c.way.Note != ""; over != (name != "ours") {
			t.Errorf("%s: note %q", name, c.way.Note)
		}
	}
}

func TestThePriceFileIsComplete(t *testing.T) {
	t.Parallel()
	p, err := cost.LoadPrices()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []cost.Way{p.Around(), p.NAT(), p.Fargate(cost.Load{})} {
		for _, l := range w.Lines {
			if l.Dollars <= 0 || l.Dollars > 100 {
				t.Errorf("%s: %s = %v", w.Name, l.Arithmetic, l.Dollars)
			}
		}
	}
	if p.AsOf == "" || p.StepFunctionsThousand <= 0 || p.SQSMillion <= 0 || p.SchedulerMillion <= 0 || p.LambdaGBSecond <= 0 {
		t.Errorf("the file lacks a price or its date: %+v", p)
	}
}
