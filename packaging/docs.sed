# SPDX-License-Identifier: Apache-2.0
#
# sed -Ef packaging/docs.sed PAGE: the page as make install puts it into the documentation. A link to what is installed elsewhere leads
# there; one to what only the source has becomes its text and the path; the license is where the distribution has licenses.
s#\]\((\.\./)?packaging/prometheus/#](\1prometheus/#g
s#\[(([a-z]+/)+[a-z]+\.(c|go|h)|go\.mod)\]\((\.\./)?\1\)#`\1`#g
s#\[test\]\((\.\./)?(tests/[^)]*)\)#`\2`#g
s#\[([^]]*)\]\((\.\./)?((exporter|gojail|healthcheck|include|internal|netsetup|packaging|spank|tests)/[^)]*|CONTRIBUTING\.md|go\.mod)\)#\1 (`\3`)#g
s#\[([^]]*)\]\((\.\./)?LICENSE\)#\1#g
