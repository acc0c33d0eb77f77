package server

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"seckill/test/broker"
)

// The key that signs tokens, and the role that may do everything.
const (
	pulsarSecret = "seckill-test-secret-of-32-bytes!"
	pulsarAdmin  = "admin"
)

// pulsarRequestTimeout bounds one request of a test's own.
const pulsarRequestTimeout = 20 * time.Second

// pulsarOpen is what Pulsar wants from Java's insides.
var pulsarOpen = []string{
	"--add-opens", "java.base/sun.net=ALL-UNNAMED", "--add-opens", "java.base/java.lang=ALL-UNNAMED",
	"--add-opens", "java.base/java.util=ALL-UNNAMED", "--add-opens", "java.base/java.nio=ALL-UNNAMED",
	"--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED", "--add-opens", "java.base/jdk.internal.platform=ALL-UNNAMED",
	"--add-opens", "java.management/sun.management=ALL-UNNAMED", "--add-opens", "jdk.management/com.sun.management.internal=ALL-UNNAMED",
}

// PulsarOptions change the defaults of a test's Pulsar.
type PulsarOptions struct {
	// Tokens makes clients sign in with a token of PulsarToken. A role has no
	// rights before Grant.
	Tokens bool
	// TLS makes the server also listen with TLS at SecureURL; nil means plain
	// only.
	TLS *TLS
	// Settings are further lines of standalone.conf, such as
	// "maxMessageSize=1048576".
	Settings []string
}

// PulsarToken is a token for a role.
func PulsarToken(role string) string {
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{Subject: role}).SignedString([]byte(pulsarSecret))
	if err != nil {
		panic(err) // a claim and a key of bytes are always signed
	}
	return token
}

// Pulsar is a standalone broker with its own bookie and metadata. As by default,
// it creates a topic without partitions at its first use.
type Pulsar struct {
	Broker
	m *pulsarMachine
}

type pulsarMachine struct {
	*javaBroker
	address string // of the binary protocol
	secure  string // of the binary protocol with TLS
	web     string // of the admin API
}

// NewPulsar starts a Pulsar with empty data for the time of the test. It waits
// until no other broker of any test process runs.
func NewPulsar(t testing.TB) *Pulsar {
	t.Helper()
	return NewPulsarWith(t, PulsarOptions{})
}

// NewPulsarWith is NewPulsar with options.
func NewPulsarWith(t testing.TB, opt PulsarOptions) *Pulsar {
	t.Helper()
	jars := needJars(t, broker.Pulsar)
	slot.take(t)
	m, err := newPulsar(needJava(t), jars, opt)
	if err != nil {
		t.Fatal(err)
	}
	return &Pulsar{newBroker(t, m.javaBroker), m}
}

// SharedPulsar is one Pulsar for all tests of the test binary, under the rules of
// SharedKafka.
func SharedPulsar(t testing.TB) *Pulsar {
	t.Helper()
	java := needJava(t)
	m := slot.share(t, broker.Pulsar, func(jars string) (brokerMachine, error) {
		return newPulsar(java, jars, PulsarOptions{})
	}).(*pulsarMachine)
	return &Pulsar{sharedBroker(t, m.javaBroker), m}
}

// pulsarLogging sends the log to the same place as other servers' logs.
const pulsarLogging = `status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss.SSS} %p %m (%c{1})%n%throwable
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
`

func newPulsar(java, jars string, opt PulsarOptions) (*pulsarMachine, error) {
	m := &pulsarMachine{}
	var bookie string
	var err error
	if m.javaBroker, err = newJavaBroker(broker.Pulsar, jars, &m.address, &m.secure, &m.web, &bookie); err != nil {
		return nil, err
	}
	settings, logging := filepath.Join(m.dir, "standalone.conf"), filepath.Join(m.dir, "log4j2.properties")
	err = os.WriteFile(settings, []byte(strings.Join(pulsarSettings(m, opt), "\n")+"\n"), 0o600)
	if err == nil {
		err = os.WriteFile(logging, []byte(pulsarLogging), 0o600)
	}
	if err != nil {
		m.end()
		return nil, fmt.Errorf("make a Pulsar: %w", err)
	}
	// Its data is in the folder data below its working folder.
	m.main = &child{
		name: "pulsar " + m.address, dir: m.dir, path: java, patience: brokerPatience, ready: m.ready,
		args: javaArgs(jars, m.dir, append(pulsarOpen[:len(pulsarOpen):len(pulsarOpen)],
			"-Xms192m", "-Xmx384m", "-XX:MaxDirectMemorySize=256m",
			"-Dlog4j2.configurationFile="+logging, "-Dpulsar.standalone.dir="+filepath.Join(m.dir, dataName),
			"org.apache.pulsar.PulsarStandaloneStarter", "--config", settings, "-nss", "-nfw", "--advertised-address", "127.0.0.1",
			"--bookkeeper-port", portOf(bookie))...),
	}
	return m, nil
}

func pulsarSettings(m *pulsarMachine, opt PulsarOptions) []string {
	settings := []string{
		"clusterName=standalone", "bindAddress=127.0.0.1", "advertisedAddress=127.0.0.1",
		"brokerServicePort=" + portOf(m.address), "webServicePort=" + portOf(m.web), "webSocketServiceEnabled=true",
		"managedLedgerDefaultEnsembleSize=1", "managedLedgerDefaultWriteQuorum=1", "managedLedgerDefaultAckQuorum=1",
		"managedLedgerCacheSizeMB=32", "brokerDeleteInactiveTopicsEnabled=false",
		"diskUsageThreshold=0.98", "diskUsageWarnThreshold=0.97",
		// Messages belong to the bookie's port. Without this setting each start
		// takes another port and does not find them.
		"allowEphemeralPorts=true",
	}
	if opt.Tokens {
		settings = append(settings,
			"authenticationEnabled=true", "authorizationEnabled=true", "superUserRoles="+pulsarAdmin,
			"authenticationProviders=org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
			"tokenSecretKey=data:;base64,"+base64.StdEncoding.EncodeToString([]byte(pulsarSecret)),
			"brokerClientAuthenticationPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken",
			"brokerClientAuthenticationParameters=token:"+PulsarToken(pulsarAdmin))
	}
	if opt.TLS != nil {
		settings = append(settings,
			"brokerServicePortTls="+portOf(m.secure), "tlsTrustCertsFilePath="+opt.TLS.CAFile,
			"tlsCertificateFilePath="+opt.TLS.CertFile, "tlsKeyFilePath="+opt.TLS.KeyFile,
			"tlsRequireTrustedClientCertOnConnect="+strconv.FormatBool(!opt.TLS.Anyone))
	}
	return append(settings, opt.Settings...)
}

// ready makes the broker send a message to itself.
func (m *pulsarMachine) ready() error {
	if err := dialOnce(m.address); err != nil {
		return err
	}
	if err := m.admin(http.MethodGet, "brokers/health", ""); err != nil {
		return err
	}
	return m.admin(http.MethodGet, "persistent/public/default", "") // made after the broker is up
}

// admin sends one request to the admin API.
func (m *pulsarMachine) admin(method, path, body string) error {
	request, err := http.NewRequest(method, "http://"+m.web+"/admin/v2/"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+PulsarToken(pulsarAdmin)) // ignored without tokens
	client := http.Client{Timeout: pulsarRequestTimeout}
	defer client.CloseIdleConnections()
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusMultipleChoices {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, logTail))
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	return nil
}

// URL is the broker's address as clients want it, pulsar://host:port.
func (p *Pulsar) URL() string { return "pulsar://" + p.m.address }

// Addr is the broker's address, host:port, and SecureAddr that for TLS.
func (p *Pulsar) Addr() string       { return p.m.address }
func (p *Pulsar) SecureAddr() string { return p.m.secure }

// CreateTopic creates a topic with partitions in the namespace public/default.
// If the topic was already created without partitions by a client's connection,
// it stays so.
func (p *Pulsar) CreateTopic(topic string, partitions int) {
	p.t.Helper()
	err := p.m.admin(http.MethodPut, "persistent/public/default/"+topic+"/partitions", strconv.Itoa(partitions))
	if err != nil && !strings.Contains(err.Error(), "409") {
		p.t.Fatalf("create topic %s: %v", topic, err)
	}
}

// DeleteTopic deletes a topic with partitions, its messages and subscriptions.
func (p *Pulsar) DeleteTopic(topic string) {
	p.t.Helper()
	if err := p.m.admin(http.MethodDelete, "persistent/public/default/"+topic+"/partitions?force=true", ""); err != nil {
		p.t.Fatalf("delete topic %s: %v", topic, err)
	}
}

// Grant gives a role rights on the namespace public/default: "produce" and
// "consume".
func (p *Pulsar) Grant(role string, rights ...string) {
	p.t.Helper()
	body := `["` + strings.Join(rights, `","`) + `"]`
	if err := p.m.admin(http.MethodPost, "namespaces/public/default/permissions/"+role, body); err != nil {
		p.t.Fatalf("grant rights to %s: %v", role, err)
	}
}
