// Command configure writes the stack's settings from the identifier of an RDS
// instance or an Aurora cluster. It only reads from AWS, with the credentials
// and the region of the environment, and never overwrites a settings file. The
// argument is the identifier. Environment variables:
//
//	NAME          the stack's name; default: sume-poller
//	ADMIN_SECRET  ARN of the admin's secret, if RDS does not keep it
//	SETTINGS      the file to write; default: infra/settings.json
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"sumepoller/infra/settings"
)

func main() {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func start() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w := wish{
		db: strings.Join(os.Args[1:], " "), name: cmp.Or(os.Getenv("NAME"), "sume-poller"),
		adminSecret: os.Getenv("ADMIN_SECRET"), path: cmp.Or(os.Getenv("SETTINGS"), settings.Path),
	}
	if w.db == "" {
		return errors.New("no database named; want make configure DB= and the identifier of an RDS instance or an Aurora cluster")
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("load the AWS configuration: %w", err)
	}
	return run(ctx, cfg, w, os.Stdout)
}

// wish is the request of the user.
type wish struct{ db, name, adminSecret, path string }

// run finds the database, checks the settings as a deploy would, and writes them.
func run(ctx context.Context, cfg aws.Config, w wish, out io.Writer) error {
	if _, err := os.Stat(w.path); err == nil {
		return fmt.Errorf("%s: exists already; move it away first", w.path)
	}
	s, notes, err := find(ctx, cfg, w)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the settings: %w", err)
	}
	if _, err := settings.Parse(data); err != nil {
		return fmt.Errorf("AWS describes %s in a way that makes no valid settings:\n%w", w.db, err)
	}
	file, err := os.OpenFile(w.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	_, err = file.Write(append(data, '\n'))
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	fmt.Fprintf(out, "%s: written from %s\n", w.path, w.db)
	for _, note := range notes {
		fmt.Fprintln(out, note)
	}
	return nil
}
