package sume

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// endpoint returns the base URL with the segments behind it, each escaped.
func (c *Client) endpoint(segments ...string) *url.URL {
	u := *c.base
	u.RawPath = u.EscapedPath()
	for _, s := range segments {
		u.Path += "/" + s
		u.RawPath += "/" + url.PathEscape(s)
	}
	return &u
}

// validID reports whether a job id can be sent as one segment of a path, so
// that no server or proxy takes it for something else.
func validID(id string) bool {
	return id != "." && id != ".." && strings.TrimSpace(id) != "" && utf8.ValidString(id) &&
		!strings.ContainsFunc(id, unicode.IsControl)
}
