package sink

// What the targets that are brokers have in common. The body is a CloudEvent in
// structured mode, so its attributes are not repeated beside it.
const (
	ContentTypeName = "content-type"
	ContentType     = "application/cloudevents+json; charset=UTF-8"
	IDName          = "webhook-id" // the same for all kinds of sinks
	// Stored is the status of a delivery that succeeded.
	Stored = "stored"
)
