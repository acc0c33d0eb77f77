package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"seckill/test/broker"
	"seckill/test/certificate"
)

// Message types of a topic of RocketMQ.
const (
	RocketMQNormal = "NORMAL"
	RocketMQDelay  = "DELAY"
	RocketMQFIFO   = "FIFO"
)

// The account of a RocketMQ with sign-in. It may do everything.
const (
	RocketMQAccessKey = "seckill"
	RocketMQSecretKey = "seckill-secret"
)

const (
	rocketName   = "broker-a"
	rocketQueues = 4 // of a topic
	rocketAuth   = "org.apache.rocketmq.auth.authentication.provider."
)

// rocketOpen is what RocketMQ wants from Java's insides.
var rocketOpen = []string{
	"--add-exports", "java.base/jdk.internal.ref=ALL-UNNAMED", "--add-exports", "java.base/sun.nio.ch=ALL-UNNAMED",
	"--add-opens", "java.base/java.nio=ALL-UNNAMED", "--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED",
}

// RocketMQOptions change the defaults of a test's RocketMQ.
type RocketMQOptions struct {
	// SignIn makes the proxy require RocketMQAccessKey and RocketMQSecretKey.
	SignIn bool
	// TLS is the proxy's certificate; with nil the proxy makes one itself. The
	// proxy also accepts plain connections, and requires no client certificate.
	TLS *certificate.Pair
}

// RocketMQ is a name server, and a proxy with the broker inside. Faults hit the
// proxy. Topics and groups must be created before their use, also after a wipe.
type RocketMQ struct {
	Broker
	m *rocketMachine
}

type rocketMachine struct {
	*javaBroker
	address string // of the proxy, gRPC
	names   string // of the name server, remoting
	broker  string // of the broker, remoting
}

// NewRocketMQ starts a RocketMQ with empty data for the time of the test. It
// waits until no other broker of any test process runs.
func NewRocketMQ(t testing.TB) *RocketMQ {
	t.Helper()
	return NewRocketMQWith(t, RocketMQOptions{})
}

// NewRocketMQWith is NewRocketMQ with options.
func NewRocketMQWith(t testing.TB, opt RocketMQOptions) *RocketMQ {
	t.Helper()
	jars := needJars(t, broker.RocketMQ)
	slot.take(t)
	m, err := newRocketMQ(needJava(t), jars, opt)
	if err != nil {
		t.Fatal(err)
	}
	return &RocketMQ{newBroker(t, m.javaBroker), m}
}

// SharedRocketMQ is one RocketMQ for all tests of the test binary, under the rules
// of SharedKafka.
func SharedRocketMQ(t testing.TB) *RocketMQ {
	t.Helper()
	java := needJava(t)
	m := slot.share(t, broker.RocketMQ, func(jars string) (brokerMachine, error) {
		return newRocketMQ(java, jars, RocketMQOptions{})
	}).(*rocketMachine)
	return &RocketMQ{sharedBroker(t, m.javaBroker), m}
}

func newRocketMQ(java, jars string, opt RocketMQOptions) (*rocketMachine, error) {
	m := &rocketMachine{}
	var remoting string // of the proxy; unused
	var err error
	if m.javaBroker, err = newJavaBroker(broker.RocketMQ, jars, &m.address, &m.names, &remoting); err != nil {
		return nil, err
	}
	if err := m.configure(java, remoting, opt); err != nil {
		m.end()
		return nil, fmt.Errorf("make a RocketMQ: %w", err)
	}
	return m, nil
}

func (m *rocketMachine) configure(java, remoting string, opt RocketMQOptions) error {
	if err := m.reserveBroker(); err != nil {
		return err
	}
	namesFile, err := m.file("names.conf",
		"bindAddress=127.0.0.1", "listenPort="+portOf(m.names), "rocketmqHome="+m.dir,
		"kvConfigPath="+filepath.Join(m.dir, "names.json"), "configStorePath="+filepath.Join(m.dir, "names.properties"))
	if err != nil {
		return err
	}
	data := filepath.Join(m.dir, dataName)
	brokerFile, err := m.file("broker.conf", append(brokerSignIn(opt),
		"brokerClusterName=DefaultCluster", "brokerName="+rocketName, "brokerId=0", "brokerIP1=127.0.0.1",
		"bindAddress=127.0.0.1", "listenPort="+portOf(m.broker), "haListenPort=0", "namesrvAddr="+m.names,
		"storePathRootDir="+data, "storePathCommitLog="+filepath.Join(data, "commitlog"),
		// The defaults are for disks of terabytes, and refuse writes to one that is three quarters full.
		"mappedFileSizeCommitLog=16777216", "mappedFileSizeConsumeQueue=600000", "diskMaxUsedSpaceRatio=98",
		"maxIndexNum=10000", "maxHashSlotNum=2500",
		"autoCreateTopicEnable=false", "autoCreateSubscriptionGroup=false", "timerWheelEnable=true")...)
	if err != nil {
		return err
	}
	proxy, err := json.Marshal(m.proxySettings(remoting, opt))
	if err != nil {
		return err
	}
	proxyFile, err := m.file("proxy.json", string(proxy))
	if err != nil {
		return err
	}
	env := []string{"ROCKETMQ_HOME=" + m.dir}
	home := "-Drocketmq.home.dir=" + m.dir
	m.before = []*child{{
		name: "rocketmq names " + m.names, dir: m.dir, path: java, env: env, patience: brokerPatience,
		args:  javaArgs(m.jars, m.dir, "-Xms32m", "-Xmx64m", home, "org.apache.rocketmq.namesrv.NamesrvStartup", "-c", namesFile),
		ready: func() error { return dialOnce(m.names) },
	}}
	args := javaArgs(m.jars, m.dir, append(rocketOpen, "-Xms192m", "-Xmx320m", "-XX:MaxDirectMemorySize=256m", home,
		"org.apache.rocketmq.proxy.ProxyStartup", "-pm", "LOCAL", "-bc", brokerFile, "-pc", proxyFile)...)
	m.main = &child{name: "rocketmq " + m.address, dir: m.dir, path: java, env: env, patience: brokerPatience, args: args, ready: m.ready}
	return nil
}

func (m *rocketMachine) proxySettings(remoting string, opt RocketMQOptions) map[string]any {
	settings := map[string]any{
		"rocketMQClusterName": "DefaultCluster", "namesrvAddr": m.names, "localServeAddr": "127.0.0.1",
		"grpcShutdownTimeSeconds":              1, // 60 s by default, while a client is connected
		"topicRouteServiceCacheRefreshSeconds": 1, // 20 s by default, also for a topic that was not found
		"grpcServerPort":                       json.Number(portOf(m.address)), "remotingListenPort": json.Number(portOf(remoting)),
	}
	if opt.TLS != nil {
		settings["tlsTestModeEnable"] = false
		settings["tlsKeyPath"], settings["tlsCertPath"] = opt.TLS.KeyFile, opt.TLS.CertFile
	}
	if opt.SignIn {
		settings["authenticationEnabled"] = true
		settings["authenticationProvider"] = rocketAuth + "DefaultAuthenticationProvider"
		settings["authenticationMetadataProvider"] = "org.apache.rocketmq.proxy.auth.ProxyAuthenticationMetadataProvider"
	}
	return settings
}

// brokerSignIn stores the account in the broker. Only the proxy requires it,
// because the tools of the tests connect to the broker.
func brokerSignIn(opt RocketMQOptions) []string {
	if !opt.SignIn {
		return nil
	}
	return []string{
		"authenticationMetadataProvider=" + rocketAuth + "LocalAuthenticationMetadataProvider",
		fmt.Sprintf(`initAuthenticationUser={"username":%q,"password":%q}`, RocketMQAccessKey, RocketMQSecretKey),
	}
}

// reserveBroker finds an address for the broker. It listens on the port two below
// as well, which cannot be configured.
func (m *rocketMachine) reserveBroker() error {
	const attempts = 20
	for range attempts {
		home, err := newPlace(string(broker.RocketMQ), m.dir)
		if err != nil {
			return err
		}
		m.leave = append(m.leave, home.leave)
		port, err := strconv.Atoi(portOf(home.address))
		if err != nil {
			return err
		}
		below, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port-2)))
		if err != nil {
			continue
		}
		m.broker = home.address
		return below.Close()
	}
	return errors.New("no two ports for the broker are free")
}

// file writes a file of settings.
func (m *rocketMachine) file(name string, lines ...string) (string, error) {
	path := filepath.Join(m.dir, name)
	return path, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

func portOf(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// ready asks the name server for the broker, because the broker registers there
// when it is ready.
func (m *rocketMachine) ready() error {
	if err := dialOnce(m.broker); err != nil {
		return err
	}
	info, err := remotingCall(m.names, remotingClusterInfo, nil, nil)
	if err != nil {
		return err
	}
	if !bytes.Contains(info, []byte(rocketName)) {
		return fmt.Errorf("%s is not registered yet", rocketName)
	}
	return dialOnce(m.address)
}

// Addr is the proxy's gRPC address, the endpoint of clients, host:port. It
// accepts TLS and plain connections.
func (r *RocketMQ) Addr() string { return r.m.address }

// CreateTopic creates a topic for a type of messages, one of RocketMQNormal,
// RocketMQDelay and RocketMQFIFO, and waits until clients find it.
func (r *RocketMQ) CreateTopic(topic, messageType string) {
	r.t.Helper()
	queues := strconv.Itoa(rocketQueues)
	_, err := remotingCall(r.m.broker, remotingCreateTopic, map[string]string{
		"topic": topic, "attributes": "+message.type=" + messageType, "readQueueNums": queues, "writeQueueNums": queues, "perm": "6",
		"defaultTopic": "TBW102", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
	}, nil)
	if err != nil {
		r.t.Fatalf("create topic %s: %v", topic, err)
	}
	poll(r.t, "the route of "+topic, func() error {
		_, err := remotingCall(r.m.names, remotingRoute, map[string]string{"topic": topic}, nil)
		return err
	})
}

// CreateGroup creates a group of consumers that begins with the oldest message.
func (r *RocketMQ) CreateGroup(group string) {
	r.t.Helper()
	config, err := json.Marshal(map[string]any{
		"groupName": group, "consumeEnable": true, "consumeFromMinEnable": true, "consumeBroadcastEnable": true,
		"retryQueueNums": 1, "retryMaxTimes": 16, "brokerId": 0, "whichBrokerWhenConsumeSlowly": 1, "notifyConsumerIdsChangedEnable": true,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := remotingCall(r.m.broker, remotingCreateGroup, nil, config); err != nil {
		r.t.Fatalf("create group %s: %v", group, err)
	}
}

// ConsolePrint reads a topic from its beginning with RocketMQ's own Java admin
// tool. A message is one line with its properties and its body.
func (r *RocketMQ) ConsolePrint(topic string) string {
	r.t.Helper()
	options := append(rocketOpen[:len(rocketOpen):len(rocketOpen)], "-Drocketmq.home.dir="+r.m.dir, "-Drocketmq.client.logRoot="+r.m.dir)
	out, err := r.m.run(options, "org.apache.rocketmq.tools.command.MQAdminStartup", "printMsg", "-n", r.m.names, "-t", topic, "-d", "true")
	if err != nil {
		r.t.Fatalf("%s: %v", r.child.name, err)
	}
	return out
}
