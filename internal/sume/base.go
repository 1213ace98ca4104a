package sume

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ParseBase reads the API's base URL and adds /v1 where it does not end in it.
// Only https is taken, and plain http where the host is loopback. Its errors
// do not repeat the URL.
func ParseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "":
		return nil, errors.New("sume base url: not an absolute URL such as https://api.sume.com/v1")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("sume base url: a login, query or fragment has no place in it")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return nil, errors.New("sume base url: must be https, or http on loopback")
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	if !strings.HasSuffix(path, "/v1") {
		path += "/v1"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).Parse(path)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// at returns the URL of the path that the segments make below the base, each
// escaped as one segment.
func (c *Client) at(segments ...string) *url.URL {
	u := *c.base
	u.RawPath = u.EscapedPath()
	for _, s := range segments {
		u.Path += "/" + s
		u.RawPath += "/" + url.PathEscape(s)
	}
	return &u
}

// sendable tells whether an id can be the id of a job: a path segment of its
// own that no server or proxy takes for something else.
func sendable(id string) bool {
	return id != "." && id != ".." && strings.TrimSpace(id) != "" && utf8.ValidString(id) &&
		!strings.ContainsFunc(id, unicode.IsControl)
}
