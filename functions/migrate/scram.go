package main

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// Parameters of RFC 7677 as PostgreSQL uses them.
const (
	scramIterations = 4096
	scramSaltLength = 16
)

// scramVerifier returns what PostgreSQL stores for a password, so that no statement,
// and so no server log, contains the password. It takes printable ASCII only: other
// characters have several encodings, and a client may hash another one.
func scramVerifier(password string) (string, error) {
	for _, r := range password {
		if r < ' ' || r > '~' {
			return "", errors.New("its password has characters outside printable ASCII: generate another")
		}
	}
	salt := make([]byte, scramSaltLength)
	_, _ = rand.Read(salt)
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		return "", errors.New("its password cannot be hashed")
	}
	stored := sha256.Sum256(sign(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", scramIterations, encode(salt), encode(stored[:]), encode(sign(salted, "Server Key"))), nil
}

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
