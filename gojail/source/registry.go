// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/gojail/gojail/internal/oneline"
)

// openRegistry finds an image in a registry. Credentials are those of docker and podman: ~/.docker/config.json,
// REGISTRY_AUTH_FILE and containers/auth.json in XDG_RUNTIME_DIR.
func (s Source) openRegistry(ctx context.Context, options Options) (*Image, error) {
	wanted, err := parsePlatform(options.Platform)
	if err != nil {
		return nil, err
	}
	var parse []name.Option
	if options.Insecure {
		parse = append(parse, name.Insecure)
	}
	reference, err := name.ParseReference(s.rest, parse...)
	if err != nil {
		return nil, fmt.Errorf("%s%s: %w", kindRegistry, s.rest, oneline.Error(err))
	}
	transport, err := newTransport(options)
	if err != nil {
		return nil, err
	}
	image, err := fetchImage(reference, wanted, remote.WithContext(ctx),
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithTransport(transport), remote.WithPlatform(wanted), remote.WithUserAgent("gojail"))
	if err != nil {
		return nil, fmt.Errorf("cannot get %s: %w", reference, oneline.Error(err))
	}
	return image, nil
}

// fetchImage reads the manifest and the configuration of an image. The library verifies their digests.
func fetchImage(reference name.Reference, wanted v1.Platform, options ...remote.Option) (*Image, error) {
	found, err := remote.Image(reference, options...)
	if err != nil {
		return nil, err
	}
	digest, err := found.Digest()
	if err != nil {
		return nil, err
	}
	manifest, err := found.Manifest()
	if err != nil {
		return nil, err
	}
	if err := checkLayers(manifest); err != nil {
		return nil, err
	}
	if size := manifest.Config.Size; size < 0 || size > documentMax { // the library reads so many bytes into memory
		return nil, fmt.Errorf("the manifest says that the configuration has %d bytes; the limit is %d", size,
			documentMax)
	}
	configText, err := found.RawConfigFile()
	if err != nil {
		return nil, err
	}
	return newManifestImage(digest, manifest, configText, wanted, func(d v1.Descriptor) (*Layer, error) {
		return &Layer{Remote: true, Open: func(context.Context) (io.ReadCloser, error) {
			layer, err := found.LayerByDigest(d.Digest)
			if err != nil {
				return nil, oneline.Error(err)
			}
			return layer.Compressed()
		}}, nil
	})
}

// newTransport returns the transport to a registry: TLS, unless the options or a loopback address allow HTTP.
func newTransport(options Options) (http.RoundTripper, error) {
	transport := remote.DefaultTransport.(*http.Transport).Clone()
	if options.Authority != "" {
		text, err := os.ReadFile(options.Authority)
		if err != nil {
			return nil, fmt.Errorf("cannot read the certificates of the registry: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate in PEM format", options.Authority)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &secureTransport{transport, options.Insecure, options.Authority != ""}, nil
}

// secureTransport refuses requests without TLS. The library itself falls back to them for private addresses.
type secureTransport struct {
	http.RoundTripper
	insecure bool
	named    bool // whether an authority is configured: then TLS is required on loopback, too
}

var errInsecure = errors.New("the registry does not offer TLS; if the network is trusted, give --insecure")

// redirectsMax is the limit of redirects of one request. Package http has the same limit for clients without a check of
// their own; the library's clients have one.
const redirectsMax = 10

// countRedirects returns the number of redirects that led to a request.
func countRedirects(request *http.Request) (n int) {
	for request.Response != nil && request.Response.Request != nil {
		request = request.Response.Request
		n++
	}
	return n
}

func (t *secureTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" && !t.insecure && (t.named || !isLoopback(request.URL.Hostname())) {
		return nil, errInsecure
	}
	if countRedirects(request) > redirectsMax {
		return nil, fmt.Errorf("the registry has redirected the request more than %d times", redirectsMax)
	}
	return t.RoundTripper.RoundTrip(request)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
