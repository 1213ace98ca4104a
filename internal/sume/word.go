package sume

import "bytes"

// maxWord is the longest status, in bytes.
const maxWord = 64

// word returns the status that the first of the values that holds one gives,
// empty where none does. A value that is null or a blank text holds none.
func word(values ...[]byte) (string, error) {
	for _, value := range values {
		if !given(value) {
			continue
		}
		if !isString(value) {
			return "", errWord
		}
		text := bytes.TrimSpace(unquote(value))
		if len(text) == 0 {
			continue
		}
		return normalise(text)
	}
	return "", nil
}

// normalise puts a status into lower case, letter by letter: the folding of
// other alphabets turns some of their letters into ours.
func normalise(text []byte) (string, error) {
	var lower [maxWord]byte
	if len(text) > maxWord {
		return "", errWord
	}
	for i, c := range text {
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return "", errWord
		}
		lower[i] = c
	}
	if w, ok := known[string(lower[:len(text)])]; ok {
		return w, nil
	}
	return string(lower[:len(text)]), nil
}
