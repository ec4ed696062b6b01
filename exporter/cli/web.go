// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/spf13/cobra"

	"github.com/gojail/gojail/exporter/series"
	"github.com/gojail/gojail/internal/version"
)

// webOptions are the flags of the HTTP server.
type webOptions struct {
	addresses []string
	config    string
	socket    bool
}

// defaultAddress is that of nobody but this host.
const defaultAddress = "127.0.0.1:9948"

func (w *webOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&w.addresses, "listen-address", []string{defaultAddress},
		"address and port to listen at; may be repeated")
	flags.StringVar(&w.config, "web-config", "",
		"file with TLS and authentication, as of all exporters with exporter-toolkit")
	flags.BoolVar(&w.socket, "systemd-socket", false, "listen at the sockets of a systemd socket unit")
}

// Limits of the HTTP server: a scrape of a large cluster takes a second at most.
const (
	scrapesMost   = 8
	scrapeTimeout = 30 * time.Second
)

// serve answers scrapes until ctx ends.
func (w *webOptions) serve(ctx context.Context, log *slog.Logger, gatherer *series.Gatherer) error {
	if w.config != "" {
		if err := web.Validate(w.config); err != nil {
			return fmt.Errorf("--web-config %s: %w", w.config, err)
		}
	}
	handler, err := newHandler(gatherer, log)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: scrapeTimeout, ReadTimeout: scrapeTimeout,
		WriteTimeout: scrapeTimeout, IdleTimeout: 5 * time.Minute}
	context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(ending) != nil {
			server.Close()
		}
	})
	err = web.ListenAndServe(server, &web.FlagConfig{WebListenAddresses: &w.addresses, WebSystemdSocket: &w.socket,
		WebConfigFile: &w.config}, log)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("cannot serve metrics: %w", err)
}

// newHandler returns what answers /metrics, and / with a page that names it.
func newHandler(gatherer *series.Gatherer, log *slog.Logger) (http.Handler, error) {
	own := prometheus.NewRegistry()
	own.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	page, err := web.NewLandingPage(web.LandingConfig{
		Name: "gojail-exporter", Description: "What slurmctld knows", Version: version.Text(),
		Links: []web.LandingLinks{{Address: "/metrics", Text: "Metrics"}},
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", page)
	mux.Handle("/metrics", promhttp.HandlerFor(both{own, gatherer}, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError), MaxRequestsInFlight: scrapesMost,
		Timeout: scrapeTimeout,
	}))
	return mux, nil
}

// both gathers from two sources whose names differ, without the checks that each has made already.
type both [2]prometheus.Gatherer

// Gather returns the metrics of both.
func (b both) Gather() ([]*dto.MetricFamily, error) {
	first, err := b[0].Gather()
	if err != nil {
		return nil, err
	}
	second, err := b[1].Gather()
	return append(second, first...), err
}
