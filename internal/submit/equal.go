package submit

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// equal tells whether two bodies are the same JSON value: blanks, the order of
// an object's fields and the spelling of a string or number do not count.
// Numbers are compared exactly, however many digits they have. Two texts that
// are not JSON are equal where their bytes are.
func equal(a, b []byte) bool {
	return bytes.Equal(a, b) || json.Valid(a) && json.Valid(b) && canonical(a) == canonical(b)
}

// canonical writes valid JSON in one form per value. A name that an object
// holds twice stays there twice, in its order.
func canonical(text []byte) string {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	c := canon{text: text, dec: dec}
	return c.value(c.next())
}

type canon struct {
	text []byte
	dec  *json.Decoder
}

// next returns the next token, strings and numbers in their canonical form.
func (c canon) next() any {
	before := c.dec.InputOffset()
	token, err := c.dec.Token()
	if err != nil {
		return nil
	}
	switch token := token.(type) {
	case string:
		if strings.ContainsRune(token, utf8.RuneError) { // half a surrogate pair, say: only the spelling tells them apart
			return string(bytes.TrimLeft(c.text[before:c.dec.InputOffset()], " \t\r\n:,"))
		}
		return strconv.Quote(token)
	case json.Number:
		return number(token.String())
	}
	return token
}

func (c canon) value(token any) string {
	switch token := token.(type) {
	case json.Delim:
		defer c.next() // the closing one
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

func (c canon) array() string {
	var items []string
	for c.dec.More() {
		items = append(items, c.value(c.next()))
	}
	return "[" + strings.Join(items, ",") + "]"
}

func (c canon) object() string {
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
func number(text string) string {
	digits, sign := strings.CutPrefix(text, "-")
	exponent := new(big.Int)
	if at := strings.IndexAny(digits, "eE"); at >= 0 {
		exponent.SetString(strings.TrimPrefix(digits[at+1:], "+"), 10)
		digits = digits[:at]
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	exponent.Sub(exponent, big.NewInt(int64(len(fraction))))
	digits = strings.TrimLeft(whole+fraction, "0")
	kept := strings.TrimRight(digits, "0")
	exponent.Add(exponent, big.NewInt(int64(len(digits)-len(kept))))
	switch {
	case kept == "":
		return "0"
	case sign:
		kept = "-" + kept
	}
	return kept + "e" + exponent.String()
}
