package sume_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/sume"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	const second = time.Second
	type want struct {
		sume.Decoded
		Err string
	}
	good := func(terminal bool, status string, next time.Duration) want {
		return want{Decoded: sume.Decoded{Terminal: terminal, Status: status, NextPoll: next}}
	}
	bad := func(reason string) want { return want{Err: reason} }
	for name, tt := range map[string]struct {
		body string
		want want
	}{
		"short shape":                      {`{"terminal": false, "sume_status": "processing", "next_poll_after_seconds": 15}`, good(false, "processing", 15*second)},
		"long shape":                       {`{"data":{"job_id":"job_1","request_id":"job_9","status":"COMPLETED","sume_status":"completed","terminal":true,"job":{"id":"job_1","status":"completed"}},"request_id":"req_1"}`, good(true, "completed", 0)},
		"job status before status":         {`{"job":{"status":"failed"},"status":"processing"}`, good(true, "failed", 0)},
		"sume_status before job status":    {`{"sume_status":"processing","job":{"status":"failed"}}`, good(false, "processing", 0)},
		"null sume_status":                 {`{"sume_status":null,"status":"expired"}`, good(true, "expired", 0)},
		"empty sume_status":                {`{"sume_status":" ","status":"expired"}`, good(true, "expired", 0)},
		"upper case and spaces":            {`{"status":" \tCOMPLETED\n "}`, good(true, "completed", 0)},
		"escaped name and value":           {`{"st\u0061tus":"c\u006fmpleted"}`, good(true, "completed", 0)},
		"unknown word, terminal":           {`{"terminal":true,"status":"archived"}`, good(true, "archived", 0)},
		"unknown word alone":               {`{"status":"archived"}`, good(false, "archived", 0)},
		"our own pending, open":            {`{"status":"pending"}`, good(false, "pending", 0)},
		"terminal false alone":             {`{"terminal":false}`, good(false, "", 0)},
		"terminal null":                    {`{"terminal":null,"status":"success"}`, good(true, "success", 0)},
		"data wins over the top":           {`{"status":"success","data":{"status":"processing"}}`, good(false, "processing", 0)},
		"data without an answer":           {`{"status":"success","data":{"x":1}}`, good(true, "success", 0)},
		"data is a list":                   {`{"status":"success","data":[]}`, good(true, "success", 0)},
		"names match exactly":              {`{"STATUS":"completed","status":"processing","Terminal":true}`, good(false, "processing", 0)},
		"id as a number's digits":          {`{"status":"queued","job_id":"job_1","id":7}`, good(false, "queued", 0)},
		"id spelled with escapes":          {`{"status":"queued","job_id":"job\u005f1"}`, good(false, "queued", 0)},
		"longest word":                     {`{"status":"` + strings.Repeat("a", sume.MaxWord) + `"}`, good(false, strings.Repeat("a", sume.MaxWord), 0)},
		"deep nesting beside":              {`{"status":"queued","x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, good(false, "queued", 0)},
		"brackets and quotes in strings":   {`{"x":"}]\"{[","y":{"z":["\\",{}]},"status":"queued"}`, good(false, "queued", 0)},
		"a cousin that looks like a field": {`{"x":{"status":"completed","terminal":true},"status":"queued"}`, good(false, "queued", 0)},

		"null":                        {`null`, bad("not an object")},
		"list":                        {`[]`, bad("not an object")},
		"string":                      {`"x"`, bad("not an object")},
		"number":                      {`12`, bad("not an object")},
		"data an empty list alone":    {`{"data":[]}`, bad("neither terminal nor a status")},
		"empty object":                {`{}`, bad("neither terminal nor a status")},
		"data that says nothing":      {`{"data":{"status":null},"status":"completed"}`, bad("neither terminal nor a status")},
		"empty":                       {``, bad("not JSON")},
		"spaces":                      {" \n", bad("not JSON")},
		"html":                        {`<!doctype html><title>x</title>`, bad("not JSON")},
		"byte-order mark":             {"\ufeff{\"status\":\"completed\",\"terminal\":true}", bad("not JSON")},
		"cut":                         {`{"terminal":true,"status":"comp`, bad("not JSON")},
		"two values":                  {`{"status":"completed"}{}`, bad("not JSON")},
		"NaN":                         {`{"status":"queued","next_poll_after_seconds":NaN}`, bad("not JSON")},
		"nested without end":          {strings.Repeat("[", 100_000), bad("not JSON")},
		"nested too deep":             {strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), bad("not JSON")},
		"terminal without status":     {`{"terminal":true}`, bad("terminal without a status")},
		"terminal, status of spaces":  {`{"terminal":true,"status":"  "}`, bad("terminal without a status")},
		"terminal, status null":       {`{"terminal":true,"status":null}`, bad("terminal without a status")},
		"terminal as text":            {`{"terminal":"true","status":"completed"}`, bad("terminal is not a boolean")},
		"terminal as a number":        {`{"terminal":1,"status":"completed"}`, bad("terminal is not a boolean")},
		"status a number":             {`{"terminal":true,"status":5}`, bad("unusable status")},
		"status an object":            {`{"terminal":true,"status":{}}`, bad("unusable status")},
		"status too long":             {`{"status":"` + strings.Repeat("a", sume.MaxWord+1) + `"}`, bad("unusable status")},
		"status with a space inside":  {`{"terminal":true,"status":"all done"}`, bad("unusable status")},
		"status with NUL":             {`{"terminal":true,"status":"done\u0000"}`, bad("unusable status")},
		"a letter that folds to k":    {`{"terminal":true,"status":"o\u212a"}`, bad("unusable status")},
		"terminal and our pending":    {`{"terminal":true,"status":"pending"}`, bad("terminal and status contradict")},
		"terminal and processing":     {`{"terminal":true,"status":"processing"}`, bad("terminal and status contradict")},
		"terminal and in progress":    {`{"terminal":true,"sume_status":"IN_PROGRESS","status":"completed"}`, bad("terminal and status contradict")},
		"not terminal and completed":  {`{"terminal":false,"status":"completed"}`, bad("terminal and status contradict")},
		"job no object":               {`{"status":"completed","job":"job_1"}`, bad("job is not an object")},
		"another job_id":              {`{"terminal":true,"status":"completed","job_id":"job_2"}`, bad("answer for another job")},
		"another job.id":              {`{"terminal":true,"status":"completed","job":{"id":"job_2"}}`, bad("answer for another job")},
		"another job_id in data":      {`{"data":{"terminal":true,"status":"completed","job_id":"JOB_1"}}`, bad("answer for another job")},
		"job_id an object":            {`{"terminal":true,"status":"completed","job_id":{}}`, bad("answer for another job")},
		"status twice":                {`{"status":"processing","status":"completed"}`, bad("a field is repeated")},
		"status twice, once escaped":  {`{"status":"processing","stat\u0075s":"completed"}`, bad("a field is repeated")},
		"terminal twice within data":  {`{"data":{"terminal":true,"terminal":false,"status":"completed"}}`, bad("a field is repeated")},
		"job status twice":            {`{"job":{"status":"processing","status":"completed"}}`, bad("a field is repeated")},
		"the other spelling does not": {`{"status":"queued","Status":"completed"}`, good(false, "queued", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got want
			d, err := sume.Decode([]byte(tt.body), "job_1")
			if err != nil {
				got.Err = err.Error()
			} else {
				got.Decoded = d
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNextPoll(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		`15`: 15 * time.Second, `"15"`: 15 * time.Second, `" 7.5 "`: 7500 * time.Millisecond, `2.5`: 2500 * time.Millisecond,
		`1e1`: 10 * time.Second, `0.0000000000001`: 1, `"007"`: 7 * time.Second,
		`1e400`: sume.MaxWait, `99999999999999999999`: sume.MaxWait, `"99999999999999999999"`: sume.MaxWait, `1e18`: sume.MaxWait,
		`0`: 0, `-0`: 0, `-5`: 0, `"-5"`: 0, `-1e400`: 0, `1e-400`: 0, `null`: 0, `""`: 0, `" "`: 0, `"1e3"`: 0, `"+5"`: 0, `"5s"`: 0, `".5"`: 0, `"5."`: 0,
		`"1.2.3"`: 0, `"0x10"`: 0, `"NaN"`: 0, `"Inf"`: 0, `"soon"`: 0, `true`: 0, `[]`: 0, `{}`: 0, `[15]`: 0, `"1_000"`: 0, `"१५"`: 0,
	} {
		d, err := sume.Decode([]byte(`{"terminal":false,"next_poll_after_seconds":`+value+`}`), "job_1")
		if err != nil || d.NextPoll != want {
			t.Errorf("next_poll_after_seconds %s: got %v, %v, want %v", value, d.NextPoll, err, want)
		}
	}
}
