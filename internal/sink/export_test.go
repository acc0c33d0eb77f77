package sink

// AssumeFailures sets how many failures in a row a sender has seen.
func (s *Sender) AssumeFailures(n int) { s.health.failures = n }
