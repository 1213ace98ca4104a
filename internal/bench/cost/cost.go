// Package cost computes what following jobs costs a month, this program's way
// and four others, from measured figures and a dated file of list prices. Every
// line holds its arithmetic.
package cost

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

//go:embed prices.json
var pricesJSON []byte

// Prices are list prices in dollars.
type Prices struct {
	AsOf                   string  `json:"as_of"`
	Region                 string  `json:"region"`
	Source                 string  `json:"source"`
	LambdaGBSecond         float64 `json:"lambda_gb_second_arm"`
	LambdaMillion          float64 `json:"lambda_million_requests"`
	FargateVCPUHour        float64 `json:"fargate_vcpu_hour_arm"`
	FargateGBHour          float64 `json:"fargate_gb_hour_arm"`
	StepFunctionsThousand  float64 `json:"step_functions_thousand_transitions"`
	SQSMillion             float64 `json:"sqs_million_requests"`
	SchedulerMillion       float64 `json:"scheduler_million_invocations"`
	SecretMonth            float64 `json:"secret_month"`
	SecretTenThousandCalls float64 `json:"secret_ten_thousand_calls"`
	MetricMonth            float64 `json:"metric_month"`
	AlarmMonth             float64 `json:"alarm_month"`
	LogsGB                 float64 `json:"logs_gb"`
	NATHour                float64 `json:"nat_gateway_hour"`
	NATGB                  float64 `json:"nat_gateway_gb"`
	AddressHour            float64 `json:"public_address_hour"`
}

// LoadPrices returns the prices of the file.
func LoadPrices() (p Prices, err error) {
	err = json.Unmarshal(pricesJSON, &p)
	return p, err
}

// Line is one thing to pay for.
type Line struct {
	Arithmetic string
	Dollars    float64
}

// Way is one way to follow jobs, at one load.
type Way struct {
	Name  string
	Lines []Line
	Note  string
}

// Total is the sum of the lines.
func (w Way) Total() (sum float64) {
	for _, l := range w.Lines {
		sum += l.Dollars
	}
	return sum
}

// Load is a day of jobs, as measured.
type Load struct {
	Jobs      int     // a day
	Awake     float64 // seconds a day that the function reads or waits
	Runs      float64 // a day
	IdleTick  float64 // seconds of each run that come on top
	PerJob    float64 // reads of ours
	Render    float64 // seconds
	Interval  float64 // seconds between the reads of the others
	Allowance int     // reads a day
}

const (
	days    = 30
	hours   = days * 24
	memory  = 0.25 // GB of a function
	readFor = 0.2  // seconds that a function started for one read is billed
	metrics = 12
	alarms  = 10
)

// reads is how many reads the other ways make of a job.
func (l Load) reads() float64 { return math.Ceil(l.Render / l.Interval) }

// Ours is this program's way.
func (p Prices) Ours(l Load) Way {
	awake := l.Awake + l.Runs*l.IdleTick
	gb := awake * days * memory
	return Way{Name: "this poller", Lines: []Line{
		line(gb*p.LambdaGBSecond, "(%s s awake + %s runs × %s s) × %d days × %v GB = %s GB-s × $%s",
			num(l.Awake), num(l.Runs), num(l.IdleTick), days, memory, num(gb), exact(p.LambdaGBSecond)),
		line(l.Runs*days/1e6*p.LambdaMillion, "%s requests × $%.2f a million", num(l.Runs*days), p.LambdaMillion),
		line(l.Runs*days/1e6*p.SchedulerMillion, "%s ticks × $%.2f a million", num(l.Runs*days), p.SchedulerMillion),
	}}
}

// Fargate is a worker that always runs: the held-lock loop's home.
func (p Prices) Fargate(l Load) Way {
	return Way{Name: "a worker on Fargate", Note: l.over(), Lines: []Line{
		line(0.25*p.FargateVCPUHour*hours, "0.25 vCPU × %d h × $%v", hours, p.FargateVCPUHour),
		line(0.5*p.FargateGBHour*hours, "0.5 GB × %d h × $%v", hours, p.FargateGBHour),
	}}
}

// StepFunctions is a state machine for each job: wait, read, choose.
func (p Prices) StepFunctions(l Load) Way {
	perJob := 3*l.reads() + 2
	n := perJob * float64(l.Jobs) * days
	return Way{Name: "a Step Functions wait loop", Note: l.over(), Lines: []Line{
		line(n/1000*p.StepFunctionsThousand, "(3 transitions × %s reads + start and record) × %s jobs = %s × $%v a thousand",
			num(l.reads()), num(float64(l.Jobs)*days), num(n), p.StepFunctionsThousand),
		p.functionPerRead(l),
	}}
}

// SQS is a delayed message for each read.
func (p Prices) SQS(l Load) Way {
	reads := l.reads() * float64(l.Jobs) * days
	idle := float64(5 * 3 * 60 * hours)
	return Way{Name: "SQS delays", Note: l.over(), Lines: []Line{
		line((3*reads+idle)/1e6*p.SQSMillion, "(send, receive, delete × %s reads + %s empty receives of Lambda's five pollers) × $%.2f a million",
			num(reads), num(idle), p.SQSMillion),
		p.functionPerRead(l),
	}}
}

// Schedules is a one-shot schedule for each read.
func (p Prices) Schedules(l Load) Way {
	reads := l.reads() * float64(l.Jobs) * days
	return Way{Name: "one-shot schedules", Note: l.over(), Lines: []Line{
		line(reads/1e6*p.SchedulerMillion, "%s invocations × $%.2f a million", num(reads), p.SchedulerMillion),
		p.functionPerRead(l),
	}}
}

// functionPerRead is a function's invocation for each read.
func (p Prices) functionPerRead(l Load) Line {
	reads := l.reads() * float64(l.Jobs) * days
	return line(reads*(readFor*memory*p.LambdaGBSecond+p.LambdaMillion/1e6),
		"%s invocations × (%v s × %v GB × $%s + $%.2f a million)", num(reads), readFor, memory, exact(p.LambdaGBSecond), p.LambdaMillion)
}

// Around is what comes with every one of the ways, where it is run with the
// same care: secrets, metrics, alarms, logs.
func (p Prices) Around() Way {
	const calls = 2.0 * 12 * hours // cached five minutes
	const logs = 0.1               // GB
	return Way{Name: "with any of them", Lines: []Line{
		line(2*p.SecretMonth+calls/1e4*p.SecretTenThousandCalls, "2 secrets × $%.2f + %s calls × $%.2f a ten thousand", p.SecretMonth, num(calls), p.SecretTenThousandCalls),
		line(metrics*p.MetricMonth, "%d metrics × $%.2f", metrics, p.MetricMonth),
		line(alarms*p.AlarmMonth, "%d alarms × $%.2f", alarms, p.AlarmMonth),
		line(logs*p.LogsGB, "%v GB of logs × $%.2f", logs, p.LogsGB),
	}}
}

// NAT is the way out of a private network that has none yet.
func (p Prices) NAT() Way {
	const traffic = 1.0 // GB
	return Way{Name: "a NAT gateway, where the network has none", Lines: []Line{
		line(hours*p.NATHour, "%d h × $%v", hours, p.NATHour),
		line(hours*p.AddressHour, "its address %d h × $%v", hours, p.AddressHour),
		line(traffic*p.NATGB, "%v GB × $%v", traffic, p.NATGB),
	}}
}

// over tells by how much a fixed interval passes the day's allowance.
func (l Load) over() string {
	if n := l.reads() * float64(l.Jobs); n > float64(l.Allowance) {
		return fmt.Sprintf("%s reads a day, where %s are allowed", num(n), num(float64(l.Allowance)))
	}
	return ""
}

func line(dollars float64, format string, args ...any) Line {
	return Line{fmt.Sprintf(format, args...), dollars}
}

// exact writes a small price with all its digits.
func exact(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// num writes a number with its thousands apart, three digits after the point
// at most where it is small.
func num(v float64) string {
	if v < 10 && v != math.Trunc(v) {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	text := strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
