package strictjson_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sumepoller/internal/strictjson"
)

type order struct {
	Name  string         `json:"name"`
	Count int            `json:"count"`
	Ready bool           `json:"ready"`
	At    *time.Time     `json:"at"`
	Items []item         `json:"items"`
	Body  strictjson.Raw `json:"body"`
}

type item struct {
	ID string `json:"id"`
}

func TestUnmarshal(t *testing.T) {
	t.Parallel()
	const data = ` {"name": "a\u00e9", "count": -3, "ready": true, "at": "2026-11-01T01:00:00+01:00",
		"items": [{"id": "x"}, {}], "body": { "b": "\ud800", "b": 1.0 } } `
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	want := order{
		Name: "aé", Count: -3, Ready: true, At: &at, Items: []item{{ID: "x"}, {}},
		Body: strictjson.Raw(`{ "b": "\ud800", "b": 1.0 }`),
	}
	var got order
	if err := strictjson.Unmarshal([]byte(data), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestUnmarshal_Invalid(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ data, want string }{
		"no data":            {" \n", "empty; want JSON"},
		"not UTF-8":          {"{\"name\": \"\xff\"}", "not UTF-8"},
		"cut off":            {`{"name": "a"`, "the JSON is cut off"},
		"syntax":             {`{"items": [{"id": x}]}`, "items[0].id: not JSON: invalid character 'x' at start of value (byte offset 18)"},
		"two values":         {`{} {}`, "not JSON: invalid character '{' after top-level value (byte offset 3)"},
		"null":               {`null`, "want an object, got null"},
		"array":              {`[]`, "want an object, got an array"},
		"unknown field":      {`{"Name": "a"}`, "Name: unknown field; want name, count, ready, at, items or body"},
		"unknown, one field": {`{"items": [{"a b": 1}]}`, `items[0]."a b": unknown field; want id`},
		"unknown, a number":  {`{"7": 1}`, "7: unknown field; want name, count, ready, at, items or body"},
		"unknown, a newline": {`{"a\nb": 1}`, `"a\nb": unknown field; want name, count, ready, at, items or body`},
		"given twice":        {`{"count": 1, "c\u006funt": 1}`, "count: given twice"},
		"number for string":  {`{"name": 1}`, "name: want a string, got a number"},
		"empty string":       {`{"name": ""}`, "name: want a string, got an empty one"},
		"string for integer": {`{"count": "1"}`, "count: want an integer, got a string"},
		"fraction":           {`{"count": 1.5}`, "count: want an integer, got 1.5"},
		"exponent":           {`{"count": 1e3}`, "count: want an integer, got 1e3"},
		"integer too large":  {`{"count": 99999999999999999999999}`, "count: want an integer, got 99999999999999999999"},
		"null for boolean":   {`{"ready": null}`, "ready: want a boolean, got null"},
		"number for boolean": {`{"ready": 0}`, "ready: want a boolean, got a number"},
		"null for time":      {`{"at": null}`, "at: want a string, got null"},
		"no such day":        {`{"at": "2026-02-30T00:00:00Z"}`, "at: want a time of RFC 3339, such as 2026-11-01T00:00:00Z"},
		"object for array":   {`{"items": {}}`, "items: want an array, got an object"},
		"null in an array":   {`{"items": [{}, null]}`, "items[1]: want an object, got null"},
		"inside of Raw":      {`{"body": {"secret": [x]}}`, "body: not JSON: invalid character 'x' at start of value (byte offset 21)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := strictjson.Unmarshal([]byte(tt.data), new(order))
			if err == nil || err.Error() != tt.want || !errors.As(err, new(*strictjson.Error)) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestUnmarshal_Bounded(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"next":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	for name, data := range map[string]string{
		"depth": deep, "depth of Raw": `{"body": ` + deep + "}", "name": `{"` + strings.Repeat("x", 3000) + `": 1}`, "number": `{"count": ` + strings.Repeat("1", 3000) + "}",
	} {
		var v struct {
			order
			Next *node `json:"next"`
		}
		if err := strictjson.Unmarshal([]byte(data), &v); err == nil || len(err.Error()) > 250 {
			t.Errorf("%s: got %.300v, want a short error", name, err)
		}
	}
}

type node struct {
	Next *node `json:"next"`
}

func TestUnmarshalAll(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		data string
		want []string
		left order
	}{
		"no error": {`{"name": "a"}`, nil, order{Name: "a", Count: 7}},
		"each field": {
			`{"nam": 1, "count": 1.5, "name": 2, "7": 1, "items": [{"id": "a"}, {"id": 4}, {"ID": 5}], "ready": true, "ready": true, "at": "now", "body": {"a": 1, "a": 2}}`,
			[]string{
				"nam: unknown field; want name, count, ready, at, items or body", "count: want an integer, got 1.5", "name: want a string, got a number",
				"7: unknown field; want name, count, ready, at, items or body", "items[1].id: want a string, got a number", "items[2].ID: unknown field; want id",
				"ready: given twice", "at: want a time of RFC 3339, such as 2026-11-01T00:00:00Z",
			},
			order{Count: 7, Items: []item{{ID: "a"}, {}, {}}, Ready: true, Body: strictjson.Raw(`{"a":1,"a":2}`)},
		},
		"item of an array": {`{"items": [1, 2], "name": 3}`, []string{"items[0]: want an object, got a number", "name: want a string, got a number"}, order{Count: 7, Items: []item{{}}}},
		"array":            {`[]`, []string{"want an object, got an array"}, order{Count: 7}},
		"not JSON":         {`{"nam": 1, "name": x}`, []string{"not JSON: invalid character 'x' at start of value (byte offset 19)"}, order{Count: 7}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := order{Count: 7}
			var got []string
			for _, e := range strictjson.UnmarshalAll([]byte(tt.data), &v) {
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			v.At = nil // what is left of an invalid time is of no use
			if diff := cmp.Diff(tt.left, v); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}
