package submit_test

import (
	"testing"

	"sumepoller/internal/submit"
)

func TestEqual(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		a, b string
		want bool
	}{
		"other whitespace":           {`{"a":1,"b":[1,2]}`, "{ \"a\" : 1,\n\"b\" : [ 1 , 2 ] }", true},
		"other order of fields":      {`{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"d":3,"c":2},"a":1}`, true},
		"other order of items":       {`{"a":[1,2]}`, `{"a":[2,1]}`, false},
		"other spelling of a string": {`{"a":"\u00e9\/"}`, `{"a":"é/"}`, true},
		"other spelling of a name":   {`{"\u0061":1}`, `{"a":1}`, true},
		"other case of a name":       {`{"a":1}`, `{"A":1}`, false},
		"other spelling of a number": {`[1, 10, 0.5, -0, 120, 0]`, `[1.0, 1e1, 5E-1, 0, 1.20e+2, 0.000e7]`, true},
		"numbers beyond a float":     {`[12345678901234567890]`, `[12345678901234567891]`, false},
		"fractions beyond a float":   {`[0.1]`, `[0.1000000000000000000001]`, false},
		"powers beyond a float":      {`[1e999999999999999999999]`, `[1e999999999999999999998]`, false},
		"number and string":          {`[1]`, `["1"]`, false},
		"other sign":                 {`[1]`, `[-1]`, false},
		"null and no field":          {`{"a":null}`, `{}`, false},
		"null, false, 0 and empty":   {`[null,false,0,""]`, `[false,null,"",0]`, false},
		"empty array and object":     {`{"a":[]}`, `{"a":{}}`, false},
		"nested array":               {`[[1],2]`, `[[1,2]]`, false},
		"field twice":                {`{"a":1,"a":2}`, `{"a":2}`, false},
		"field twice, other order":   {`{"a":1,"a":2}`, `{"a":2,"a":1}`, false},
		"different half surrogates":  {`["\ud800"]`, `["\ud801"]`, false},
		"surrogate pair":             {`["\ud83d\ude00"]`, `["😀"]`, true},
		"quotes in a string":         {`["a\",\"b"]`, `["a","b"]`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := submit.Equal([]byte(tt.a), []byte(tt.b)); got != tt.want {
				t.Errorf("%s and %s: got %v, want %v", tt.a, tt.b, got, tt.want)
			}
		})
	}
}
