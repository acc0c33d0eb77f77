package sink

// AssumeFailures lets a sender have seen so many failures in a row.
func (s *Sender) AssumeFailures(n int) { s.health.failures = n }
