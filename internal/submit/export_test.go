package submit

var (
	Equal   = equal
	OneLine = oneLine
)
