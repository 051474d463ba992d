module hopwise/benches/gvisor

go 1.23.1

require (
	golang.org/x/sys v0.26.0
	gvisor.dev/gvisor v0.0.0-20250503011706-39ed1f5ac29c
)

require (
	github.com/google/btree v1.1.2 // indirect
	golang.org/x/time v0.7.0 // indirect
)
