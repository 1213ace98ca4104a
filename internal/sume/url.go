package sume

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// request returns a request for the path that the segments make below the base
// URL, each escaped. body is nil for a read.
func (c *Client) request(method string, header http.Header, body []byte, segments ...string) *http.Request {
	u := *c.base
	u.RawPath = u.EscapedPath()
	for _, s := range segments {
		u.Path += "/" + s
		u.RawPath += "/" + url.PathEscape(s)
	}
	req := &http.Request{Method: method, URL: &u, Host: u.Host, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if body != nil {
		req.ContentLength = int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, _ = req.GetBody()
	}
	return req
}

// validID reports whether a job id can be sent as one segment of a path, so
// that no server or proxy takes it for something else.
func validID(id string) bool {
	return id != "." && id != ".." && strings.TrimSpace(id) != "" && utf8.ValidString(id) &&
		!strings.ContainsFunc(id, unicode.IsControl)
}
