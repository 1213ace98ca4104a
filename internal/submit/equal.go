package submit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// equal reports whether two bodies are the same JSON value. Whitespace, the
// order of an object's fields and the spelling of strings and numbers do not
// count. Numbers are compared exactly, however many digits they have. Bodies
// that are not JSON are equal if their bytes are.
func equal(a, b []byte) bool {
	return bytes.Equal(a, b) || json.Valid(a) && json.Valid(b) && canonical(a) == canonical(b)
}

// canonical writes valid JSON in one form for each value. A name that an object
// has twice stays twice, in its order.
func canonical(data []byte) string {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	c := canonicalizer{data: data, dec: dec}
	return c.value(c.next())
}

type canonicalizer struct {
	data []byte
	dec  *json.Decoder
}

// next returns the next token, strings and numbers in their canonical form.
func (c canonicalizer) next() any {
	before := c.dec.InputOffset()
	token, err := c.dec.Token()
	if err != nil {
		return nil
	}
	switch token := token.(type) {
	case string:
		if strings.ContainsRune(token, utf8.RuneError) { // perhaps half a surrogate pair, which only the spelling shows
			return string(bytes.TrimLeft(c.data[before:c.dec.InputOffset()], " \t\r\n:,"))
		}
		return strconv.Quote(token)
	case json.Number:
		return number(token.String())
	}
	return token
}

func (c canonicalizer) value(token any) string {
	switch token := token.(type) {
	case json.Delim:
		defer c.next() // the closing delimiter
		if token == '{' {
			return c.object()
		}
		return c.array()
	case bool:
		return strconv.FormatBool(token)
	case string:
		return token
	}
	return "null"
}

func (c canonicalizer) array() string {
	var items []string
	for c.dec.More() {
		items = append(items, c.value(c.next()))
	}
	return "[" + strings.Join(items, ",") + "]"
}

func (c canonicalizer) object() string {
	type member struct{ name, value string }
	var members []member
	for c.dec.More() {
		name, _ := c.next().(string)
		members = append(members, member{name, c.value(c.next())})
	}
	slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	var b strings.Builder
	for _, m := range members {
		b.WriteString(m.name + ":" + m.value + ",")
	}
	return "{" + b.String() + "}"
}

// number writes a JSON number as its digits, without zeros at either end, and
// a power of ten.
func number(literal string) string {
	digits, negative := strings.CutPrefix(literal, "-")
	digits, power, _ := strings.Cut(strings.ToLower(digits), "e")
	exponent := new(big.Int)
	exponent.SetString(strings.TrimPrefix(cmp.Or(power, "0"), "+"), 10)
	integer, fraction, _ := strings.Cut(digits, ".")
	exponent.Sub(exponent, big.NewInt(int64(len(fraction))))
	digits = strings.TrimLeft(integer+fraction, "0")
	kept := strings.TrimRight(digits, "0")
	exponent.Add(exponent, big.NewInt(int64(len(digits)-len(kept))))
	if kept == "" {
		return "0"
	}
	if negative {
		kept = "-" + kept
	}
	return kept + "e" + exponent.String()
}
