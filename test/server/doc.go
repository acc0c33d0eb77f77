// Package server runs the real servers that tests need beside the engine:
// redis-server (alone, as a pair under Sentinel, as a cluster), mariadbd (or a
// mysqld in its place), Kafka, RocketMQ and Pulsar (one of them at a time on a
// machine, see SharedKafka), and proxies between them and the engine that slow, cut
// or freeze a network. Each is a child process on a free loopback port with
// temporary data, so that it can be killed, paused and restarted. Where a server
// cannot be had, the test is skipped with a text that begins with "MISSING: ".
package server
