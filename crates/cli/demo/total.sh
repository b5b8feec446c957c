#!/bin/sh
# Prints the sum of the prices in a file of lines "name price".
sum=0
while read -r name price; do
    sum=$((sum + price))
done < "$1"
echo "$sum"
